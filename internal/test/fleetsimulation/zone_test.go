package fleetsimulation

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/relay"
)

// zone is the group of a zone: it orders the broadcasts of each member, delivers those of
// one that dies to all survivors or to none, and tells views late.
type zone struct {
	sim         *Simulation
	name        string
	view        []*member // its members, those that have died just now included
	started     int
	incarnation uint64
	lives       int  // times that the first member of a zone has begun it
	side        int  // zones reach those of the same side
	busy        bool // a kill or the death of the zone is not over
}

// cast is a broadcast in a zone.
type cast struct {
	from    *member
	number  int // counts those of its sender
	frame   []byte
	all     []*member // members that it is for
	waiting []*member // members that do not have it yet
}

// alive returns the live members, the oldest first.
func (z *zone) alive() []*member {
	return slices.DeleteFunc(slices.Clone(z.view), func(m *member) bool { return m.dead })
}

// start starts a member, which joins the zone or, if there is none, begins it. A process that
// comes back has the ID and the rank of one that is gone.
func (z *zone) start() *member {
	if len(z.view) == 0 {
		z.incarnation = 0
		z.lives++
	}
	z.incarnation++
	rank := 0
	for slices.ContainsFunc(z.view, func(m *member) bool { return m.rank == rank }) {
		rank++
	}
	z.started++
	m := &member{
		sim: z.sim, zone: z, rank: rank, id: fmt.Sprint(z.name, rank), incarnation: z.incarnation, life: z.lives,
		began: z.sim.now, tick: never, got: make(map[relay.Origin]*progress), arrivals: make(map[*member]relay.Time),
	}
	m.pace = z.sim.plan.pace
	if z.sim.rng.IntN(z.sim.plan.zones*z.sim.plan.members) == 0 {
		m.pace = z.sim.plan.slow
	}
	m.machine = relay.New(z.sim.config(m))
	z.flush()
	z.view = append(z.view, m)
	z.sim.record(m.id, "starts, incarnation %d", m.incarnation)
	z.announce()
	m.enter()
	return m
}

// byAge returns the members, the oldest first.
func (z *zone) byAge() []*member {
	return slices.SortedFunc(slices.Values(z.view), func(a, b *member) int { return cmp.Compare(a.age(), b.age()) })
}

// delegates returns the oldest members.
func (z *zone) delegates() []*member {
	byAge := z.byAge()
	return byAge[:min(len(byAge), maxDelegates)]
}

const maxDelegates = 3

// announce tells the members a view, each at its time.
func (z *zone) announce() {
	var siblings []relay.Sibling
	for _, m := range z.delegates() {
		siblings = append(siblings, relay.Sibling{Rank: m.rank, Age: m.age()})
	}
	z.announceMeta()
	for _, m := range z.view {
		m.viewAt = max(m.viewAt, z.sim.now+z.sim.between(0, 20*millisecond))
		z.sim.after(m.viewAt-z.sim.now, func() {
			m.step(func(now relay.Time) { m.machine.SetZone(now, siblings, m.rank) })
		})
	}
}

// broadcast sends a frame to all other members.
func (z *zone) broadcast(from *member, frame []byte) {
	from.casts++
	c := &cast{from: from, number: from.casts, frame: frame}
	for _, m := range z.view {
		if m != from {
			c.waiting = append(c.waiting, m)
		}
	}
	c.all = slices.Clone(c.waiting)
	from.inFlight += len(frame)
	from.flying = append(from.flying, c)
	for _, m := range c.all {
		at := max(from.arrivals[m]+1, z.sim.now+z.sim.between(z.sim.plan.near/2, z.sim.plan.near+1))
		from.arrivals[m] = at
		z.sim.after(at-z.sim.now, func() {
			if !from.dead {
				z.arrive(c, m)
			}
		})
	}
	z.finish(from)
}

// arrive takes a cast in at a member, where it waits to be read.
func (z *zone) arrive(c *cast, m *member) {
	i := slices.Index(c.waiting, m)
	if i < 0 || m.dead {
		return
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	m.topic = append(m.topic, c)
	m.read()
	z.finish(c.from)
}

// finish ends casts that all members have.
func (z *zone) finish(from *member) {
	for len(from.flying) > 0 && len(from.flying[0].waiting) == 0 {
		from.inFlight -= len(from.flying[0].frame)
		from.stable = from.flying[0].number
		from.flying = from.flying[1:]
	}
	from.settle()
}

// flush has all members get what is on its way, before a view changes.
func (z *zone) flush() {
	for _, m := range z.alive() {
		for _, c := range slices.Clone(m.flying) {
			for _, to := range slices.Clone(c.waiting) {
				z.arrive(c, to)
			}
		}
	}
}

// kill ends a member. The others notice after a while.
func (z *zone) kill(m *member) {
	m.dead = true
	z.sim.result.Kills++
	z.sim.record(m.id, "is killed")
	z.busy = true
	z.sim.after(z.sim.between(millisecond, 2*second), func() { z.remove(m) })
	if m.session != nil {
		m.session.group.reviewAfter(millisecond, 3*second)
	}
}

// remove installs a view without a member. What it has cast reaches all if one of them has it.
func (z *zone) remove(gone *member) {
	z.view = slices.DeleteFunc(z.view, func(m *member) bool { return m == gone })
	for _, c := range gone.flying {
		had := slices.ContainsFunc(c.all, func(m *member) bool { return !m.dead && !slices.Contains(c.waiting, m) })
		for _, m := range slices.Clone(c.waiting) {
			if had {
				z.arrive(c, m)
			}
		}
	}
	z.flush()
	for _, m := range z.view {
		for _, c := range m.flying {
			c.waiting = slices.DeleteFunc(c.waiting, func(w *member) bool { return w == gone })
		}
		z.finish(m)
	}
	z.sim.record(z.name, "view without %s: %v", gone.id, z.view)
	z.busy = false
	z.announce()
}
