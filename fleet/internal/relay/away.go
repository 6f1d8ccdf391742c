package relay

import (
	"maps"
	"slices"
)

// A zone that is known and not in the backbone is away: it was cut off, or is dead. Others wait
// for it for a while (Config.Patience): no message that it lacks is dropped, and so their
// origins wait when their windows are full. After that it is given up: they go on, and it is
// told what it has missed when it is back.
//
// The lead names the zones that are given up in its watermarks. So its successor knows which
// zones have what is acknowledged: all but those, although a gateway of theirs may not have
// read it yet. A zone that is new is one of them until it has caught up.

// setAway notes which zones are not in the backbone, and which are new in it.
func (s *shipping) setAway(now Time) {
	s.giveZonesUp(now)
	for _, zone := range s.zones {
		if delete(s.away, zone); !s.based[zone] {
			s.givenUp[zone] = true
		}
	}
	for zone := range s.based {
		if _, known := s.away[zone]; !known && !s.present(zone) && zone != s.self.Zone && !s.givenUp[zone] {
			s.away[zone] = now
		}
	}
}

// giveZonesUp notes which zones are not waited for any longer.
func (s *shipping) giveZonesUp(now Time) {
	for zone, since := range s.away {
		if now >= since+s.config.Patience {
			delete(s.away, zone)
			s.givenUp[zone] = true
		}
	}
}

// noteGivenUp takes in which zones the lead has given up: these and no others, if it is the
// only one that has broadcast watermarks of late.
func (s *shipping) noteGivenUp(zones []string, only bool) {
	if only && !s.active {
		clear(s.givenUp)
	}
	for _, zone := range zones {
		if delete(s.away, zone); len(s.givenUp) < maxItems {
			s.givenUp[zone] = true
		}
	}
}

// standing returns a watermark without positions.
func (s *shipping) standing() *frame {
	return &frame{kind: kindWatermark, zone: s.self.Zone, zones: slices.Sorted(maps.Keys(s.givenUp))}
}

// caughtUp forgets that zones were given up which have everything again that is
// acknowledged.
func (s *shipping) caughtUp() {
	for zone := range s.givenUp {
		l := s.links[zone]
		behind := func(of *stream) bool {
			return of.own && (l == nil || max(l.acked[of.origin], l.from[of.origin]) < of.acked)
		}
		if !slices.ContainsFunc(s.sorted, behind) {
			delete(s.givenUp, zone)
		}
	}
}

// floor returns up to where a zone has the messages of an origin of this one.
func (s *shipping) floor(l *link, of *stream) uint64 {
	if s.givenUp[l.zone] {
		return l.acked[of.origin]
	}
	return max(l.acked[of.origin], of.acked)
}

// everywhere returns up to where all zones have an origin's messages: those of the backbone,
// and those that are waited for.
func (s *shipping) everywhere(of *stream) uint64 {
	if len(s.away) > 0 {
		return of.acked
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
func (s *shipping) advance(of *stream) {
	if upTo := s.everywhere(of); of.own && upTo > of.acked {
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
	s.giveZonesUp(now)
	s.caughtUp()
	f := s.standing()
	for _, of := range s.sorted {
		s.advance(of)
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
