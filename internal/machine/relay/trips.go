package relay

import "slices"

// The delegates of a zone need not be equally far: they may be in several data centers. A
// lead measures the round trip to one delegate of each zone at a time, by a kindSync that
// covers no zone, and ships to one that is clearly nearer than the first.

// probeDelay is the time between two measurements in a zone. Those of a fleet are fewer than
// its summaries.
const probeDelay = Time(30e9)

// minSamples is how many measurements a choice needs of each delegate.
const minSamples = 2

// trip is what a lead knows of the round trip to a delegate: the shortest one. What is on top
// of that is load, and comes and goes. A route that has become longer is noticed slowly.
type trip struct {
	shortest Time
	samples  int
}

// probe is the last measurement in a zone.
type probe struct {
	peer Peer
	sent Time
	open bool // it is not answered
	next int  // which delegate is next
}

// survey is what a lead knows of the way to other zones.
type survey struct {
	*journal
	trips  map[Peer]trip     // to delegates of other zones
	probes map[string]*probe // by zone
}

// measure asks a delegate of each zone, if that is due and this member leads.
func (s *survey) measure(now Time) {
	if !s.active {
		clear(s.probes)
		return
	}
	for _, zone := range s.zones {
		p := s.probes[zone]
		if p == nil {
			p = &probe{sent: now}
			s.probes[zone] = p
		}
		if now < p.sent+probeDelay {
			continue
		}
		p.sent, p.open = now, false
		if of := s.delegates(zone); len(of) > 1 {
			*p = probe{peer: of[p.next%len(of)], sent: now, open: true, next: p.next + 1}
			s.send(p.peer, &frame{kind: kindSync, zone: s.self.Zone})
		}
	}
}

func (s *survey) deadline(d *deadline) {
	for _, p := range s.probes {
		d.at(p.sent + probeDelay)
	}
}

// measured takes in the answer to a measurement.
func (s *survey) measured(now Time, rank int, zone string) {
	p := s.probes[zone]
	if p == nil || !p.open || p.peer.Rank != rank {
		return
	}
	p.open = false
	t, took := s.trips[p.peer], now-p.sent
	if t.samples == 0 || took < t.shortest {
		t.shortest = took
	} else {
		t.shortest += (took - t.shortest) / 8
	}
	t.samples++
	s.trips[p.peer] = t
}

// nearest returns a delegate that is nearer than another one by a quarter or, if messages
// are shipped to it already, nearer at all, so that the choice does not waver.
func (s *survey) nearest(of []Peer, than Peer, now Peer) Peer {
	for _, p := range of {
		t, best := s.trips[p], s.trips[than]
		limit := best.shortest - best.shortest/4
		if p == now {
			limit = best.shortest
		}
		if min(t.samples, best.samples) >= minSamples && t.shortest < limit {
			than = p
		}
	}
	return than
}

// forgetTrips forgets delegates that are gone, and their zones.
func (s *survey) forgetTrips() {
	for p := range s.trips {
		if !slices.Contains(s.peers, p) {
			delete(s.trips, p)
		}
	}
	for zone := range s.probes {
		if !slices.Contains(s.zones, zone) {
			delete(s.probes, zone)
		}
	}
}
