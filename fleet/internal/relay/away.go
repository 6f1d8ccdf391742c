package relay

import "slices"

// A zone that has left the backbone is away: it was cut off, or is dead. Others wait for it
// for a while (Config.Patience): no message that it lacks is dropped, and so its origins wait
// when their windows are full. After that they go on, and the zone is told what it has missed.
//
// The lead names the zones that it waits for in its watermarks, so that its successor does,
// too, although that may not have seen them.

// setAway notes which zones have left the backbone, and which are back.
func (s *shipping) setAway(now Time, before []string) {
	for _, zone := range before {
		if _, known := s.away[zone]; !known {
			s.away[zone] = now
		}
	}
	for _, zone := range s.zones {
		delete(s.away, zone)
	}
}

// noteAway takes in for which zones the lead waits.
func (s *shipping) noteAway(now Time, zones []string) {
	for _, zone := range zones {
		if _, known := s.away[zone]; !known && !s.present(zone) && len(s.away) < maxItems {
			s.away[zone] = now
		}
	}
}

// awaited returns the zones that are away and waited for.
func (s *shipping) awaited(now Time) (zones []string) {
	for zone, since := range s.away {
		if now < since+s.config.Patience {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	return zones
}

// everywhere returns up to where all zones have an origin's messages: those of the backbone,
// and those that are waited for.
func (s *shipping) everywhere(now Time, of *stream) uint64 {
	for _, since := range s.away {
		if now < since+s.config.Patience {
			return of.acked
		}
	}
	least := of.position()
	for _, zone := range s.zones {
		var acked uint64
		if l := s.links[zone]; l != nil {
			acked = l.acked[of.origin]
		}
		least = min(least, acked)
	}
	return max(least, of.acked)
}

// advance notes up to where all zones have the messages of an origin of this zone.
func (s *shipping) advance(now Time, of *stream) {
	if upTo := s.everywhere(now, of); of.own && upTo > of.acked {
		s.fresh += of.bytes(of.acked, upTo)
		s.acknowledged(of, upTo)
	}
}

// sendWatermark broadcasts a watermark, if this delegate ships and there is something new:
// after a while or, if much has reached all zones, at once, since origins may wait for it.
func (s *shipping) sendWatermark(now Time) {
	due := s.lastWatermark == 0 || now >= s.lastWatermark+s.config.WatermarkDelay || s.fresh >= s.config.AckBytes
	if !s.active || !due {
		return
	}
	s.unmarked, s.fresh = false, 0
	f := &frame{kind: kindWatermark, zone: s.self.Zone, zones: s.awaited(now)}
	for _, of := range s.sorted {
		s.advance(now, of)
		if p := watermarkOf(of); of.next > 0 && p != of.marked {
			of.marked = p
			f.positions = append(f.positions, p)
		}
	}
	if len(f.positions) > 0 {
		s.lastWatermark = now
		s.cast(f)
	}
}

func watermarkOf(s *stream) position {
	p := position{Origin: s.origin, Seq: s.position()}
	if s.own {
		p.Acked = s.acked
	}
	return p
}
