package fleetsimulation

import "slices"

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
	if z.busy || z.apart || s.calm {
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

// cutOne cuts a zone off for a while, as fleets see it: the others remove its delegates from
// the backbone; those lose their quorum, leave it, and begin one of their own. When the zone is
// back, they enter the backbone of the others.
func (s *Simulation) cutOne() {
	z := s.zones[s.rng.IntN(len(s.zones))]
	if z.busy || s.calm || slices.ContainsFunc(s.zones, func(z *zone) bool { return z.apart }) {
		return
	}
	s.result.Cuts++
	z.cut, z.apart = true, true
	s.record(z.name, "is cut off")
	apart := false
	length, noticed := s.between(100*millisecond, 15*second), s.between(1500*millisecond, 3*second)
	if noticed < length {
		s.after(noticed, func() { apart = true; z.split() })
	}
	s.after(length, func() { z.heal(apart) })
}

// split takes the delegates of a zone out of the backbone, which they leave later.
func (z *zone) split() {
	s := z.sim
	z.backbone = nil
	s.record(z.name, "is removed from the backbone")
	var left []*session
	for _, o := range slices.Clone(s.main.sessions) {
		if o.member.zone == z {
			left = append(left, o)
		}
	}
	s.main.sessions = slices.DeleteFunc(slices.Clone(s.main.sessions), func(o *session) bool { return o.member.zone == z })
	s.main.announce()
	for _, o := range left {
		s.after(s.between(0, 4*second), o.leave)
	}
	s.after(s.between(5*second, 6*second), func() {
		if z.cut {
			z.backbone = &backbone{}
		}
	})
}

// heal ends a cut.
func (z *zone) heal(apart bool) {
	s := z.sim
	z.cut = false
	s.record(z.name, "is reachable again")
	s.after(10*second, func() { z.apart = false })
	if !apart {
		return
	}
	s.after(s.between(200*millisecond, 3*second), func() {
		own := z.backbone
		z.backbone = s.main
		if own == nil || own == s.main {
			return
		}
		for _, o := range slices.Clone(own.sessions) {
			s.after(s.between(0, 2*second), o.remove)
		}
	})
}

// stickOne has a delegate neither send nor read in the backbone for a while.
func (s *Simulation) stickOne() {
	if len(s.main.sessions) == 0 || s.calm {
		return
	}
	o := s.main.sessions[s.rng.IntN(len(s.main.sessions))]
	o.stuckUntil = s.now + s.between(second, 15*second)
	s.record(o.member.id, "is stuck in the backbone for %.1f s", float64(o.stuckUntil-s.now)/1e9)
}

// endTrouble lets the fleet recover: what is cut heals, and nobody dies any more.
func (s *Simulation) endTrouble() {
	s.calm = true
	s.record("", "no more trouble")
}
