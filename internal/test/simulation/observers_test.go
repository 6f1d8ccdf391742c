package simulation

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Some processes are observers. Members change their roles while the trouble lasts, processes that
// start again come with another one, and all observers may crash at once. Whatever happens to
// observers, the voters go on: the rules for a group without observers count voters only.

// roles is who wants to be an observer.
type roles struct {
	sim       *Simulation
	rng       *rand.Rand // nil: no process does
	of        map[string]bool
	observers int // of the processes that begin
}

// beginRoles draws the roles, with random numbers of its own, and when they change.
func (s *Simulation) beginRoles() {
	r := &s.roles
	r.sim = s
	if !s.options.Observers || s.options.Upgrade && s.plan.begin == founded { // voters begin a group: as many as expected
		return
	}
	r.rng, r.of = rand.New(rand.NewPCG(s.result.Seed, 0x6f627376)), make(map[string]bool)
	r.observers = s.plan.size - min(s.plan.size, 1+r.rng.IntN(5))
	order := r.rng.Perm(s.plan.size)
	if s.plan.begin == created {
		order = append([]int{0}, r.rng.Perm(s.plan.size-1)...)
		for i := range order[1:] {
			order[1+i]++
		}
	}
	for _, i := range order[s.plan.size-r.observers:] {
		r.of[identityOf(i)] = true
	}
	for range r.rng.IntN(6) {
		s.after(r.sometime(), func() { r.change(s.hosts[r.rng.IntN(len(s.hosts))].process) })
	}
	if r.rng.IntN(2) == 0 {
		s.after(r.sometime(), r.crashAll)
	}
}

func (r *roles) sometime() protocol.Time {
	return protocol.Time(r.rng.Int64N(int64(r.sim.plan.end) + 1))
}

// draw returns whether a process that starts wants to be an observer.
func (r *roles) draw(p *process) bool {
	if r.rng == nil {
		return false
	}
	if r.sim.begun && r.sim.plan.begin != founded && r.rng.IntN(4) == 0 {
		r.of[p.identity] = !r.of[p.identity]
	}
	return r.of[p.identity] && p.version >= membership.ObserverVersion
}

// change has a member ask for another role.
func (r *roles) change(p *process) {
	if p == nil || p.state != running {
		return
	}
	observer := r.rng.IntN(2) == 0
	p.do(func() {
		if p.state == running {
			p.step(func() {
				err := p.machine.SetObserver(r.sim.now, observer)
				r.sim.record(p, "wants to be an observer: %t (%v)", observer, err)
			})
		}
	})
}

// crashAll ends all observers at once. Some come back.
func (r *roles) crashAll() {
	s := r.sim
	v := s.newestView()
	s.timeline.note(s.now, "all observers crash")
	for _, h := range s.hosts {
		p := h.process
		if p == nil || p.state != running {
			continue
		}
		if m := v.Members.Find(p.self.Rank); m != nil && m.Observer && m.Incarnation == p.self.Incarnation {
			s.result.Observers++
			p.crash()
			if r.rng.IntN(2) == 0 {
				s.restartAfter(protocol.Time(r.rng.Int64N(int64(second))), p)
			}
		}
	}
}

// refused has a process that the group does not want as an observer come back as a voter.
func (r *roles) refused(p *process, err error) bool {
	refused := errors.As(err, new(*control.TooOld)) || errors.As(err, new(*control.Refusal))
	if !p.observer || !refused {
		return false
	}
	r.sim.record(p, "comes back as a voter: %v", err)
	r.of[p.identity] = false
	p.close()
	r.sim.restartAfter(millisecond, p)
	return true
}

// checkRoles checks who votes in a view, and that it follows from a majority of those who voted in
// the one before: they stay, have asked to leave, or have given way to another start.
func (c *checker) checkRoles(g *group, v *membership.View) {
	if v.Voters() == 0 || v.Voters() < v.Members.Len() && v.Version < membership.ObserverVersion {
		c.fail("%v of version %d has %d voters", v, v.Version, v.Voters())
	}
	before, ok := g.views[v.Number-1]
	if !ok || !c.sim.options.Observers {
		return
	}
	in, lowest := 0, false
	for _, m := range before.Members.All() {
		now := v.Named(m.Identity)
		if now != nil && now.Incarnation == m.Incarnation && now.Observer != m.Observer {
			c.sim.result.Roles++
		}
		p := g.members[identity{m.Identity, m.Incarnation}]
		if !m.Observer && (now != nil || p != nil && (p.leaving || p.machine.TooSlow())) {
			in++
			lowest = lowest || m.Rank == before.Leader().Rank
		}
	}
	if half := c.sim.options.Arbiter || lowest; 2*in < before.Voters() || 2*in == before.Voters() && !half {
		c.fail("%v does not follow from a majority of the voters of %v", v, &before)
	}
}

// Groups with observers keep their promises as long as a majority of the voters lives.
func TestObserversUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 300, 60, Options{Observers: true}); total != nil {
		total.exercised(t, 4, map[string]uint64{
			"changes of roles": total.roles.Load(), "observers that crash at once": total.observers.Load(),
		})
	}
}

// They do while they are upgraded, too: there are observers only afterwards.
func TestObserversUpgradeUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 100, 20, Options{Observers: true, Upgrade: true}); total != nil {
		total.exercised(t, 20, map[string]uint64{"changes of roles": total.roles.Load()})
	}
}

// Services of a group with observers keep their promises.
func TestServicesWithObserversUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 100, 20, Options{Observers: true, Services: true}); total != nil {
		total.exercised(t, 20, map[string]uint64{"changes of roles": total.roles.Load()})
	}
}
