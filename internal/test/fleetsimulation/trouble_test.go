package fleetsimulation

import (
	"slices"

	"github.com/pleach-go/pleach/internal/machine/relay"
)

// planTrouble schedules what the plan says, at random times.
func (s *Simulation) planTrouble() {
	at := func(do func()) { s.after(s.between(0, s.plan.trouble), do) }
	for range s.plan.kills {
		at(s.killOne)
	}
	for range s.plan.cuts {
		at(s.cutOne)
	}
	for range s.plan.stuck {
		at(s.stickOne)
	}
	for range s.plan.dead {
		at(s.killZone)
	}
}

// killOne kills a member, mostly a lead, of a zone that keeps a majority. Another one is
// started in its place.
func (s *Simulation) killOne() {
	z := s.zones[s.rng.IntN(len(s.zones))]
	alive := z.alive()
	if z.busy || len(alive) <= len(z.view)/2+1 || s.calm ||
		slices.ContainsFunc(alive, func(m *member) bool { return m.ready == 0 }) {
		return
	}
	victim := alive[s.rng.IntN(len(alive))]
	if i := slices.IndexFunc(alive, func(m *member) bool { return m.lead }); i >= 0 && s.rng.IntN(3) > 0 {
		victim = alive[i]
	}
	z.kill(victim)
	s.after(s.between(2*second, 8*second), func() { z.start() })
}

// killZone kills all members of a zone, and starts others.
func (s *Simulation) killZone() {
	z := s.zones[s.rng.IntN(len(s.zones))]
	if z.busy || s.calm {
		return
	}
	s.record(z.name, "dies")
	for _, m := range z.alive() {
		z.kill(m)
	}
	down := s.between(3*second, 10*second)
	s.after(down, func() {
		for range s.plan.members {
			z.start()
		}
	})
}

// cutOne cuts zones off from the others for a while, mostly one.
func (s *Simulation) cutOne() {
	if s.calm || slices.ContainsFunc(s.zones, func(z *zone) bool { return z.side > 0 }) {
		return
	}
	off := []*zone{s.zones[s.rng.IntN(len(s.zones))]}
	if s.rng.IntN(3) == 0 {
		off = append(off, s.zones[s.rng.IntN(len(s.zones))])
	}
	if slices.ContainsFunc(off, func(z *zone) bool { return z.busy }) {
		return
	}
	s.result.Cuts++
	s.turn(off, 1, 1500*millisecond, 3*second)
	s.after(s.between(100*millisecond, 15*second), func() { s.turn(off, 0, 100*millisecond, 2*second) })
}

// turn has zones reach those of another side. Delegates in backbones notice after a while.
func (s *Simulation) turn(zones []*zone, side int, low, high relay.Time) {
	for _, z := range zones {
		z.side = side
		s.record(z.name, "is on side %d", side)
	}
	for _, g := range s.groups() {
		g.reviewAfter(low, high)
	}
}

// groups returns the backbones that live delegates are in, in the order of these.
func (s *Simulation) groups() (groups []*group) {
	for _, m := range s.members() {
		if m.session != nil && !slices.Contains(groups, m.session.group) {
			groups = append(groups, m.session.group)
		}
	}
	return groups
}

// stickOne has a delegate neither send nor read in the backbone for a while.
func (s *Simulation) stickOne() {
	groups := s.groups()
	if len(groups) == 0 || s.calm {
		return
	}
	o := groups[0].sessions[s.rng.IntN(len(groups[0].sessions))]
	o.stuckUntil = s.now + s.between(second, 15*second)
	s.record(o.member.id, "is stuck in the backbone for %.1f s", float64(o.stuckUntil-s.now)/1e9)
}

// endTrouble lets the fleet recover: what is cut heals, and nobody dies any more.
func (s *Simulation) endTrouble() {
	s.calm = true
	s.record("", "no more trouble")
}
