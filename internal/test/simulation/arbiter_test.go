package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Groups have an arbiter, which is slow, does not answer for a while, loses answers although it has
// granted a view, and answers twice. Each group has a record of its own, as under another name.

// arbiter is that of all groups of a run.
type arbiter struct {
	sim    *Simulation
	rng    *rand.Rand // nil: there is none
	grants map[*group]map[uint64]string
	last   map[*group]uint64
	down   bool
}

// claimTimeout is how long a call to the arbiter may take.
const claimTimeout = second

// planArbiter makes a plan one in which halves matter.
func (p *plan) planArbiter(rng *rand.Rand) {
	p.size, p.doubles = 2*(1+rng.IntN(3)), false
	if rng.IntN(2) == 0 {
		p.size = 2
	}
	p.troubles = max(p.troubles, 1+rng.IntN(4))
	if p.begin == founded && !p.durable { // the first one alone would begin another group, or wait for the last
		p.begin = created
	}
}

// beginArbiter draws when the arbiter is down.
func (s *Simulation) beginArbiter(seed uint64) {
	a := &s.arbiter
	a.sim, a.rng = s, rand.New(rand.NewPCG(seed, 0x61726269))
	a.grants, a.last = make(map[*group]map[uint64]string), make(map[*group]uint64)
	for range a.rng.IntN(4) {
		s.after(a.within(s.plan.end), func() {
			a.down = true
			s.timeline.note(s.now, "the arbiter is down")
			s.after(a.within(2*second), func() { a.down = false })
		})
	}
}

func (a *arbiter) within(d protocol.Time) protocol.Time {
	return protocol.Time(a.rng.Int64N(int64(d) + 1))
}

// asks returns what asks the arbiter for a process, or nil.
func (p *process) asks() func(membership.Claim) {
	if p.sim.arbiter.rng == nil {
		return nil
	}
	return p.ask
}

// ask asks the arbiter. It answers late, too late, or twice.
func (p *process) ask(c membership.Claim) {
	s, a, g := p.sim, &p.sim.arbiter, p.group
	s.result.Claims++
	s.record(p, "asks the arbiter for view %d", c.View)
	travel := a.within(5 * millisecond)
	if !s.calm && a.rng.IntN(4) == 0 {
		travel = a.within(2 * second)
	}
	unanswered := !s.calm && a.rng.IntN(4) == 0 // the answer is lost
	s.after(travel, func() {
		if a.down && !s.calm {
			unanswered = true
			return
		}
		v := a.judge(g, &c)
		back := a.within(5 * millisecond)
		again := !s.calm && a.rng.IntN(3) == 0
		if !unanswered || again {
			s.after(back, func() { p.judged(c, v) })
		}
		if again {
			s.after(back+a.within(3*second), func() { p.judged(c, v) })
		}
	})
	s.after(claimTimeout, func() {
		if unanswered || travel > claimTimeout-10*millisecond {
			p.judged(c, membership.Unanswered)
		}
	})
}

// judge is the arbiter's decision.
func (a *arbiter) judge(g *group, c *membership.Claim) membership.Verdict {
	side := sideText(c.Side)
	switch {
	case c.View > a.last[g]:
		if a.grants[g] == nil {
			a.grants[g] = make(map[uint64]string)
		}
		a.last[g], a.grants[g][c.View] = c.View, side
		a.sim.result.Granted++
		return membership.Granted
	case c.View == a.last[g] && a.grants[g][c.View] == side:
		return membership.Granted
	}
	a.sim.result.Refused++
	return membership.Refused
}

// judged takes an answer, as the same process is by then.
func (p *process) judged(c membership.Claim, v membership.Verdict) {
	p.do(func() {
		if p.role == nil {
			return
		}
		s := p.sim
		s.record(p, "learns about view %d: verdict %d", c.View, v)
		if s.has(verdictIgnored) {
			v = membership.Granted
		}
		if s.has(verdictForAnyView) {
			view := p.role.View()
			c.View = view.Number + 1
		}
		p.step(func() { p.role.Judge(s.now, c, v) })
	})
}

func sideText(side []membership.Member) string {
	var b strings.Builder
	for i := range side {
		fmt.Fprintf(&b, "%s#%d ", side[i].Identity, side[i].Incarnation)
	}
	return b.String()
}

// mayContinue reports whether half of the voters of a view can decide the next one.
func (a *arbiter) mayContinue(g *group, view uint64, side []membership.Member) bool {
	return a.last[g] <= view || a.last[g] == view+1 && a.grants[g][view+1] == sideText(side)
}

// checkGrant checks that a view follows from a majority of the voters of the one before, or from half
// of them to which it was granted.
func (c *checker) checkGrant(g *group, v *membership.View) {
	before, ok := g.views[v.Number-1]
	if !ok || c.sim.arbiter.rng == nil {
		return
	}
	var side []membership.Member
	for _, m := range before.Members.All() {
		p := g.members[identity{m.Identity, m.Incarnation}]
		if !m.Observer && (v.Named(m.Identity) != nil || p != nil && (p.leaving || p.machine.TooSlow())) {
			side = append(side, *m)
		}
	}
	granted := 2*len(side) == before.Voters() && c.sim.arbiter.grants[g][v.Number] == sideText(side)
	if 2*len(side) <= before.Voters() && !granted {
		c.fail("%v follows neither from a majority of the voters of %v nor from a grant", v, &before)
	}
}

// Groups with an arbiter keep their promises, whatever the arbiter does.
func TestArbiterUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 600, 60, Options{Arbiter: true}); total != nil {
		t.Logf("%d seeds: %d claims, %d granted, %d refused, %d without a quorum in the end", total.seeds.Load(),
			total.claims.Load(), total.granted.Load(), total.refused.Load(), total.stuck.Load())
		total.exercised(t, 3, map[string]uint64{"grants": total.granted.Load(), "claims": total.claims.Load()})
		total.exercised(t, 20, map[string]uint64{"refusals": total.refused.Load()})
	}
}

// They do with observers, too.
func TestArbiterWithObserversUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 100, 20, Options{Arbiter: true, Observers: true}); total != nil {
		total.exercised(t, 20, map[string]uint64{"grants": total.granted.Load()})
	}
}

// Services of a group with an arbiter keep their promises: what they have confirmed is in every view
// that follows, whichever half decides it.
func TestServicesWithArbiterUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 100, 20, Options{Arbiter: true, Services: true}); total != nil {
		total.exercised(t, 20, map[string]uint64{"grants": total.granted.Load()})
	}
}

// Bugs in what is made of the arbiter's answers.
func TestFindsBugsOfArbitration(t *testing.T) {
	for name, bug := range map[string]Bug{
		"half continues whatever the arbiter says": verdictIgnored,
		"an answer counts for any view":            verdictForAnyView,
	} {
		t.Run(name, func(t *testing.T) { find(t, Options{Arbiter: true, Bug: bug}) })
	}
}
