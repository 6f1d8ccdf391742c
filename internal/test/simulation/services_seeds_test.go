package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// planServices makes a plan one for services. Hosts have no disks: where a majority is started
// again at once, an order may miss what only they had.
func (p *plan) planServices(rng *rand.Rand) {
	p.durable, p.moves, p.fragile, p.unicasts = false, false, 0, 0
	p.size, p.end = 3+rng.IntN(3), between(rng, second, 4*second)
	p.messages, p.polls, p.troubles = rng.IntN(10), rng.IntN(3), 1+rng.IntN(6)
	p.operations, p.leases, p.steps, p.falls = 10+rng.IntN(40), 2+rng.IntN(8), rng.IntN(4), rng.IntN(4)
	p.marks = rng.IntN(2) == 0
	p.stopped = p.begin == founded && rng.IntN(2) == 0
}

// beginServices schedules what clients and holders of leases do, and steps of clocks.
func (s *Simulation) beginServices() {
	s.checker.services.owners = make(map[ownership]*process)
	s.checker.services.tokens = make(map[*group]*[partitionCount]uint64)
	for range s.plan.operations {
		s.after(s.between(0, s.plan.end), s.operate)
	}
	for range s.plan.leases {
		s.after(s.between(0, s.plan.end), func() {
			p, hold := s.someProcess(), s.between(millisecond, second)
			if p != nil {
				p.do(func() { p.wantLease(hold) })
			}
		})
	}
	if s.plan.stopped {
		s.after(s.between(0, s.plan.end), s.stopAll)
	}
	for range s.plan.falls {
		s.after(s.between(0, s.plan.end), func() { s.falling = true })
	}
	for range s.plan.steps {
		s.after(s.between(0, s.plan.end), func() {
			h := s.hosts[s.rng.IntN(len(s.hosts))]
			h.clock.day = s.between(-10*second, 10*second)
		})
	}
}

// fall has a process crash that is about to do something for a service, if one is to. It comes
// back, or not.
func (s *services) fall() {
	p, sim := s.process, s.process.sim
	if !sim.falling || sim.calm || sim.rng.IntN(4) > 0 {
		return
	}
	sim.falling = false
	back, after := sim.rng.IntN(8) > 0, sim.between(0, 300*millisecond)
	sim.after(0, func() {
		p.crash()
		if back {
			sim.restartAfter(after, p)
		}
	})
}

// stopAll has all processes crash at once, and come back: they begin a group that knows nothing of
// the one before, while clients of the one before still hold leases.
func (s *Simulation) stopAll() {
	s.timeline.note(s.now, "all crash, and come back")
	for i, h := range s.hosts {
		p := h.process
		if p == nil {
			continue
		}
		p.crash()
		if i < s.plan.size { // doubles are on other hosts: two processes of one ID begin no group
			s.restartAfter(s.between(0, 100*millisecond), p)
		}
	}
}

// wantLease has a process take the lease, and hold it for a while.
func (p *process) wantLease(hold protocol.Time) {
	if p.state != running {
		return
	}
	p.step(func() {
		p.services.leases.wants = true
		p.services.leases.acquire(hold)
	})
}

// servicesTime bounds how long services may take after the group is one again.
const servicesTime = 20 * second

// servicesConverge checks what services promise after the trouble: every member knows the order
// and has all of it, the operations of clients have ended, every partition has an owner, and a
// lease can be had.
func (s *Simulation) servicesConverge() {
	for _, p := range s.belonging() {
		p.operate(false, 0)
		p.operate(true, 0)
		p.wantLease(50 * millisecond)
	}
	before := s.result.Leases
	gone := func() bool { return len(s.belonging()) == 0 } // the last ones were about to leave
	if !s.runUntil(s.now+servicesTime, func() bool {
		return gone() || s.agreed() && s.owned() &&
			s.result.Leases > before
	}) {
		s.checker.fail("services do not go on after the trouble:%s", s.describeServices())
		return
	}
	for _, p := range s.belonging() {
		p.services.leases.wants = false
	}
	if !s.runUntil(s.now+servicesTime, func() bool { return gone() || s.agreed() && s.owned() && s.converged() }) {
		s.checker.fail("services are not quiet after the trouble:%s", s.describeServices())
	}
}

// agreed reports whether all members have all of one order.
func (s *Simulation) agreed() bool {
	var e *epoch
	for _, p := range s.belonging() {
		if p.state != running || !p.services.order.idle() {
			return false
		}
		o := &p.services.order
		if e == nil {
			e = o.epoch
		}
		if o.epoch != e || o.delivered != uint64(len(e.log)) {
			return false
		}
	}
	return true
}

func (s *Simulation) describeServices() string {
	var b strings.Builder
	for _, p := range s.belonging() {
		if p.state != running {
			continue
		}
		o, h := &p.services.order, &p.services.shards
		view, leader, numbered := o.machine.Place()
		fmt.Fprintf(&b, "\n  %v rank %d: view %d, knows the order %t (%d, begun in %d), %d of %d delivered, %d bytes pending, %d operations; leader %d of view %d, %d numbered; casting %t, forwarding %t, acking %t; holds %d partitions in view %d until %d",
			p, p.self.Rank, p.history.last(), o.joining.Knows(), o.epoch.number, o.epoch.view, o.delivered, len(o.epoch.log),
			o.machine.Pending(), p.host.client.Pending(), leader, view, numbered, o.casting, o.forwarding, o.acking,
			h.machine.Holds(), h.view, h.machine.Until()-s.now)
	}
	return b.String()
}

// What services build on groups keeps its promises under many seeds.
func TestServicesUnderSeeds(t *testing.T) {
	total := underSeeds(t, 250, 30, Options{Services: true})
	if total == nil {
		return
	}
	t.Logf("%d seeds: %d views, %d messages ordered, %d times the order was restored and %d times begun anew, %d operations, %d leases, %d partitions owned, %d without a quorum in the end",
		total.seeds.Load(), total.views.Load(), total.ordered.Load(), total.restored.Load(), total.anew.Load(),
		total.operations.Load(), total.leases.Load(), total.owned.Load(), total.stuck.Load())
	total.exercised(t, 2, map[string]uint64{
		"messages": total.ordered.Load(), "joiners": total.restored.Load(),
		"operations": total.operations.Load(), "leases": total.leases.Load(), "partitions": total.owned.Load(),
	})
}

// Bugs in what drives services, and in what they are told, are found within plantedSeeds.
func TestFindsBugsOfServices(t *testing.T) {
	for _, bug := range []struct {
		name string
		bug  Bug
		says string
	}{
		{"a message is delivered that a majority may not have", unsafeOrder, "deliver"},
		{"what was not received is acknowledged", acknowledgedEarly, "deliver"},
		{"a session forgets", sessionForgets, "again"},
		{"a mark is taken for another's", markOfAnother, ""},
		{"an order begins anew although a member knows it", knowledgeUnheard, "anew"},
		{"a lease ends by one clock alone", leaseByOneClock, "hold a lease"},
		{"a lease counts from the reply", leaseFromTheReply, "hold a lease"},
		{"a table that begins empty gives a lease at once", leaseFromEmptyTable, "hold a lease"},
		{"tokens begin again with each group", tokensWithoutFloor, "after one of"},
		{"tokens begin by the floor of one process", tokensByOneFloor, "after one of"},
		{"an owner serves before the handoff", servesBeforeHandoff, "serve partition"},
	} {
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()
			if found := findFrom(t, rare[bug.name], Options{Services: true, Bug: bug.bug}); !strings.Contains(found, bug.says) {
				t.Errorf("found something else: %s", found)
			}
		})
	}
}
