package simulation

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Rolling restarts, as a supervisor does them: processes are ended one at a time, and the next one
// only when the one before is back. Nothing else goes wrong, so the state of services survives.

// rolling is how the processes of a run are restarted.
type rolling struct {
	kills bool    // processes crash, and the next one waits until the one before has the state
	left  []*host // still to be restarted
}

// planRolling makes a plan one of rolling restarts.
func (p *plan) planRolling(rng *rand.Rand) {
	p.durable, p.doubles, p.stopped, p.troubles, p.falls = true, false, false, 0, 0
	p.begin = created + beginning(rng.IntN(2))
	p.size, p.end = 2+rng.IntN(4), 30*second
	p.operations = 10 + rng.IntN(100)
}

// beginRolling restarts all hosts, twice.
func (s *Simulation) beginRolling() {
	s.rolling.kills = s.rng.IntN(2) == 0
	for range 2 {
		for _, i := range s.rng.Perm(len(s.hosts)) {
			s.rolling.left = append(s.rolling.left, s.hosts[i])
		}
	}
	s.whenAll(s.ready, s.roll)
}

// ready reports whether a host has a member that has the state.
func (s *Simulation) ready(h *host) bool {
	p := h.process
	return p != nil && p.state == running && p.services.order.joining.Knows()
}

// returned reports whether the next process may be ended: a process that leaves hands over first, so it
// does not matter to it whether the one before has the state.
func (s *Simulation) returned(h *host) bool {
	if s.rolling.kills && !s.has(readyByMembership) {
		return s.ready(h)
	}
	return h.process != nil && h.process.state == running
}

// whenAll does something when all hosts fulfill a condition.
func (s *Simulation) whenAll(condition func(*host) bool, then func()) {
	s.when(func() bool {
		for _, h := range s.hosts {
			if !condition(h) {
				return false
			}
		}
		return true
	}, then)
}

// when does something when a condition is fulfilled, unless the restarts are over.
func (s *Simulation) when(condition func() bool, then func()) {
	switch {
	case s.calm:
	case condition():
		then()
	default:
		s.after(millisecond, func() { s.when(condition, then) })
	}
}

// roll restarts the next host.
func (s *Simulation) roll() {
	if len(s.rolling.left) == 0 {
		return
	}
	h := s.rolling.left[0]
	s.rolling.left = s.rolling.left[1:]
	p := h.process
	if s.rolling.kills {
		p.crash()
	} else {
		s.record(p, "is told to leave")
		p.do(p.handOver)
	}
	s.when(func() bool { return p.state == ended }, func() {
		s.result.Rolled++
		s.restartAfter(s.between(0, 300*millisecond), p)
		s.when(func() bool { return h.process != p && s.returned(h) }, s.roll)
	})
}

// handOver has a process leave when another one has the state.
func (p *process) handOver() {
	if p.sim.has(leavesAtOnce) {
		p.leave()
		return
	}
	p.step(func() {
		o := &p.services.order
		members, _ := o.members()
		o.joining.View(p.machine.View().Number, members)
		o.joining.Leave(p.sim.now)
		o.carryOut()
	})
}

// rolled checks that an order does not begin again.
func (c *checker) rolled(e *epoch) {
	if c.sim.options.Rolling {
		c.fail("the order begins again in view %d, although processes were restarted one at a time", e.view)
	}
}

// finishRolling checks that all restarts were made.
func (s *Simulation) finishRolling() {
	if n := len(s.rolling.left); n > 0 {
		s.checker.fail("%d restarts were not made in %d s:%s", n, s.plan.end/second, s.describeServices())
	}
}

// Rolling restarts lose nothing, if each waits until the process before has the state (crashes), or
// is a member (processes that leave hand over first). Case 67.
func TestRollingRestartsUnderSeeds(t *testing.T) {
	total := underSeeds(t, 40, 20, Options{Services: true, Rolling: true})
	if total == nil {
		return
	}
	t.Logf("%d seeds: %d restarts, %d views, %d messages ordered, %d times the order was restored", total.seeds.Load(),
		total.rolled.Load(), total.views.Load(), total.ordered.Load(), total.restored.Load())
	total.exercised(t, 1, map[string]uint64{
		"restarts": total.rolled.Load() / 4, "joiners": total.restored.Load() / 4,
		"operations": total.operations.Load(),
	})
}

// Seeds find restarts that wait too little.
func TestFindsRestartsThatWaitTooLittle(t *testing.T) {
	for _, bug := range []Bug{readyByMembership, leavesAtOnce} {
		if found := find(t, Options{Services: true, Rolling: true, Bug: bug}); !strings.Contains(found, "begins again") {
			t.Errorf("found something else: %s", found)
		}
	}
}
