package relay

import (
	"maps"
	"slices"
)

// A zone that is covered and not in the backbone is away: it was cut off, or is dead. Others wait
// for it for a while (Config.Patience): no message that it lacks is dropped, and so their
// origins wait when their windows are full. After that it is given up: they continue, and it
// gets gaps for the messages that it has missed when it is back.
//
// The lead names the zones in its watermarks that have what is acknowledged, although a
// gateway of theirs may not have read it yet: they are covered. Its successor waits for those,
// and ships to them from there on. A zone that is new, or was given up, is covered when it has
// caught up.
//
// In a zone that begins, nothing is acknowledged, so all others are covered. It waits for those
// that its config names, and for those that the first zones that it meets wait for. Otherwise a
// zone that has died and begun again would run away from one that is cut off just then.

// setAway notes which of the zones that are covered are not in the backbone.
func (s *shipping) setAway(now Time) {
	s.giveZonesUp(now)
	for _, zone := range s.zones {
		delete(s.away, zone)
	}
	for zone := range s.covered {
		if _, known := s.away[zone]; !known && !s.present(zone) {
			s.away[zone] = now
		}
	}
}

// await has zones waited for that are not in the backbone, unless messages are acknowledged that
// they may lack.
func (s *shipping) await(zones []string) {
	if slices.ContainsFunc(s.sorted, func(of *stream) bool { return of.own && of.acked > 0 }) {
		return
	}
	for _, zone := range zones {
		if zone != s.self.Zone && !s.based[zone] && len(s.covered) < maxAwaited {
			s.covered[zone] = true
		}
	}
}

// maxAwaited bounds the zones that are waited for because others have named them.
const maxAwaited = 1024

// giveZonesUp notes which zones are not waited for any longer.
func (s *shipping) giveZonesUp(now Time) {
	for zone, since := range s.away {
		if now >= since+s.config.Patience {
			delete(s.away, zone)
			delete(s.covered, zone)
		}
	}
}

// noteCovered takes in which zones the lead says are covered. If it is not the only one that
// has broadcast watermarks of late, only those are that others have named, too.
func (s *shipping) noteCovered(zones []string, only bool) {
	if only && !s.active {
		clear(s.covered)
		for _, zone := range zones {
			s.covered[zone] = true
		}
	}
	maps.DeleteFunc(s.covered, func(zone string, _ bool) bool { return !slices.Contains(zones, zone) })
	maps.DeleteFunc(s.away, func(zone string, _ Time) bool { return !s.covered[zone] })
}

// emptyWatermark returns a watermark without positions.
func (s *shipping) emptyWatermark() *frame {
	return &frame{kind: kindWatermark, zone: s.self.Zone, zones: slices.Sorted(maps.Keys(s.covered))}
}

// cover notes which zones have everything that is acknowledged.
func (s *shipping) cover() {
	for zone, l := range s.links {
		lacks := func(of *stream) bool { return of.own && max(l.acked[of.origin], l.from[of.origin]) < of.acked }
		if !s.covered[zone] && l.synced && !slices.ContainsFunc(s.sorted, lacks) {
			s.covered[zone] = true
		}
	}
}

// floor returns up to where a zone has the messages of an origin of this one.
func (s *shipping) floor(l *link, of *stream) uint64 {
	if s.covered[l.zone] {
		return max(l.acked[of.origin], of.acked)
	}
	return l.acked[of.origin]
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
	s.cover()
	f := s.emptyWatermark()
	for _, of := range s.sorted {
		s.advance(of)
		if p := watermarkOf(of); of.next > 0 && p != of.marked {
			of.marked = p
			f.positions = append(f.positions, p)
		}
	}
	if len(f.positions) > 0 || !slices.Equal(f.zones, s.marked) {
		s.lastWatermark, s.marked = now, f.zones
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
