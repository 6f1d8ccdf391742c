package simulation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/internal/machine/membership"
)

// Bounds of what comes after the trouble, on the virtual clock.
const (
	// convergeTime is how long the group may take to be one again. A member that does
	// not answer is left out after AckTimeout, which is 5 s, and several times that may
	// pass in a row.
	convergeTime = 60 * second
	// backTime is how long all processes with their disks may take to be a group.
	backTime = 10 * second
	// viewsPerHost bounds the views after the trouble: a member may be removed, join, and
	// come back from a seat, each by itself.
	viewsPerHost = 4
	// settleTime is how long a group with nothing to do may take to be quiet: members
	// still connect to those that they send their status to, and offer them all streams.
	// idleTime is how long an idle group is watched, and idleFrames how many frames a
	// member may send per second then. Two heartbeats per 300 ms and one status are 8.
	settleTime = 8 * second
	idleTime   = 2 * second
	idleFrames = 9
	// calmTime is how long messages may take to reach all members of a group that is one
	// again: what the trouble has lost may still be asked for.
	calmTime = 6 * second
)

// converge checks what the group promises after the trouble: all live members are in one
// view, what they broadcast goes through, and then they are quiet.
func (s *Simulation) converge() {
	if s.checker.err != nil {
		return
	}
	if s.stuck() {
		s.checkStuck()
		return
	}
	calm, views := s.now, s.result.Views
	if s.plan.durable && s.plan.begin == founded && !s.runUntil(calm+backTime, s.back) {
		if !s.onlyStraysLack() {
			s.checker.fail("the processes are no group after %d s:%s", backTime/second, s.describe())
		}
		return
	}
	if !s.runUntil(s.now+convergeTime, s.converged) {
		if s.stuck() {
			s.checkStuck()
		} else if !s.onlyStraysLack() {
			s.checker.fail("the group is not one again after %d s:%s", convergeTime/second, s.describe())
		}
		return
	}
	if s.options.Services {
		s.servicesConverge()
		return
	}
	members := s.belonging()
	s.asked = s.options.Rich
	for _, p := range members {
		p.program.poll.stage = pollWanted
		p.sayRich()
		p.program.say(1 + s.rng.IntN(s.plan.longest))
	}
	if !s.runUntil(s.now+calmTime, s.converged) {
		s.checker.fail("the group does not broadcast after the trouble:%s", s.describe())
		return
	}
	s.runUntil(s.now+settleTime, nil)
	before := s.result.Frames
	s.runUntil(s.now+idleTime, nil)
	if frames := s.result.Frames - before; frames > uint64(idleFrames*len(members))*uint64(idleTime/second) {
		s.checker.fail("%d idle members send %d frames in %d s", len(members), frames, idleTime/second)
	}
	if !s.converged() {
		s.checker.fail("the group falls apart:%s", s.describe())
	}
	views = s.result.Views - views
	if views > uint64(viewsPerHost*len(s.hosts)) {
		s.checker.fail("%d views after the trouble:%s", views, s.describe())
	}
}

// back reports whether all processes are members of one view.
func (s *Simulation) back() bool {
	g, members := s.group(), s.belonging()
	for _, p := range members {
		if p.state != running || p.group != g || p.history.last() != g.newest {
			return false
		}
	}
	return s.newestView().Members.Len() == len(members)
}

// onlyStraysLack reports whether no process lacks the group but candidates that have no way to find it:
// all that they know have crashed, as observers do together, and come back elsewhere, and in this test no
// member tells its own seeds of the group, as those of outside_test.go do. Nor do members lack it whose
// group has ended with its only voter, which has begun another one since.
func (s *Simulation) onlyStraysLack() bool {
	if !s.options.Observers {
		return false
	}
	g, strays := s.group(), 0
	for _, p := range s.belonging() {
		switch {
		case p.state == running && p.group == g && p.history.last() == g.newest:
		case s.strays(p), p.state == running && p.group != g && !s.quorum(p.group, p.group.newest, true) && p.hasNoQuorum():
			strays++
		default:
			return false
		}
	}
	return strays > 0
}

// hasNoQuorum reports whether a member says so.
func (p *process) hasNoQuorum() bool {
	state, _ := p.machine.State()
	return state == membership.NoQuorum
}

// strays reports whether a candidate cannot find any member: all have moved since it was given its
// seeds, and no other candidate at these can lead it to them.
func (s *Simulation) strays(p *process) bool {
	asked := map[*process]bool{p: true}
	for list := []*process{p}; len(list) > 0; list = list[1:] {
		if list[0].role != nil {
			return false
		}
		for _, address := range list[0].life.seeds {
			if q := s.hostAt(address).at(address); q != nil && !asked[q] {
				asked[q] = true
				list = append(list, q)
			}
		}
	}
	return true
}

// group returns the one that live processes take part in: of several, the one that began
// last. Without one, it is empty.
func (s *Simulation) group() *group {
	for _, g := range slices.Backward(s.checker.groups) {
		for _, p := range s.processes {
			if p.group == g && p.role != nil {
				return g
			}
		}
	}
	return &group{}
}

// newestView returns the last view of the group.
func (s *Simulation) newestView() *membership.View {
	g := s.group()
	v := g.views[g.newest]
	return &v
}

// belonging returns the processes that should be in the group: those that live, one of
// each identity.
func (s *Simulation) belonging() (members []*process) {
	for _, p := range s.processes {
		if p.state != ended && !s.replaced(p) {
			members = append(members, p)
		}
	}
	return members
}

// replaced reports whether another live process of the same identity is in the newest
// view.
func (s *Simulation) replaced(p *process) bool {
	g := s.group()
	v := g.views[g.newest]
	for _, m := range v.Members.All() {
		if q := g.members[identity{m.Identity, m.Incarnation}]; q != nil && q != p && q.identity == p.identity {
			return q.state == running
		}
	}
	return false
}

// converged reports whether all processes are in one view, and have what the others have
// sent.
func (s *Simulation) converged() bool {
	members, g := s.belonging(), s.group()
	for _, p := range members {
		if p.state != running || p.group != g || p.history.last() != g.newest || p.leaving || !p.program.idle() {
			return false
		}
		if state, _ := p.machine.State(); state != membership.Active {
			return false
		}
	}
	if v := g.views[g.newest]; v.Members.Len() != len(members) {
		return false
	}
	for _, p := range members {
		for _, q := range members {
			if p != q && (!p.hasAllOf(q) || !p.unicast.hasAllOf(&q.unicast) || !p.hasRich(q)) {
				return false
			}
		}
	}
	return s.pendingRestarts == 0
}

// hasAllOf reports whether a process has all messages of another that it should have.
func (p *process) hasAllOf(q *process) bool {
	sent := q.program.sent
	if r := p.history.of(q); r.started || len(sent) == 0 {
		return r.next == len(sent)
	}
	last := sent[len(sent)-1].view
	return last < p.history.views[0] // before it joined; 0: nobody else was there
}

// stuck reports whether too few members are left to decide another view: of the newest
// view, or of the newest one that a live process knows. A member that decides alone, as
// the lowest of two that leaves, may end before the other learns it.
//
// With disks, all votes come back but those of members that have left, and processes that
// expect each other begin another group if too few do. Without, they do if none is left. They do
// not while observers live: to these, voters that have left look like voters that are cut off.
func (s *Simulation) stuck() bool {
	g, known := s.group(), uint64(1)
	for _, p := range s.processes {
		if p.state == running && p.group == g {
			known = max(known, p.history.last())
		}
	}
	if s.plan.begin == founded && (s.plan.durable || g.newest == 0) {
		s.result.Stuck = s.orphaned(g)
		return s.result.Stuck
	}
	s.result.Stuck = !s.quorum(g, known, true) || !s.quorum(g, g.newest, true)
	return s.result.Stuck
}

// orphaned reports whether all voters of the newest view have left, and only observers of it live, or
// members of earlier views that it has removed.
func (s *Simulation) orphaned(g *group) bool {
	v := g.views[g.newest]
	for _, m := range v.Members.All() {
		if !m.Observer && !g.left[identity{m.Identity, m.Incarnation}] {
			return false
		}
	}
	orphans := 0
	for _, p := range s.processes {
		if p.state != running || p.group != g {
			continue
		}
		if m, ok := v.Member(p.self.Rank); ok && m.Incarnation == p.self.Incarnation && !m.Observer {
			return false
		}
		orphans++
	}
	return orphans > 0
}

// checkStuck checks that the members of a group that cannot go on say so.
func (s *Simulation) checkStuck() {
	s.runUntil(s.now+convergeTime/3, nil)
	if !s.stuck() {
		return
	}
	for _, p := range s.processes {
		if p.state != running {
			continue
		}
		if state, _ := p.machine.State(); state == membership.Active {
			s.checker.fail("%v reports no lost quorum:%s", p, s.describe())
		}
	}
}

// quorum reports whether the processes of a view can decide the next one: those that take
// part in the group now, or also those whose disks have a vote.
func (s *Simulation) quorum(g *group, view uint64, disks bool) bool {
	v, alive, lowest := g.views[view], 0, false
	var side []membership.Member
	for _, m := range v.Members.All() {
		if m.Observer {
			continue
		}
		key := identity{m.Identity, m.Incarnation}
		there := func(p *process) bool { return p.role != nil && p.group == g && p.key() == key }
		if disks && s.plan.durable && !g.left[key] || slices.ContainsFunc(s.processes, there) {
			alive++
			lowest = lowest || m.Rank == v.Leader().Rank
			side = append(side, *m)
		}
	}
	if s.options.Arbiter {
		return 2*alive > v.Voters() || 2*alive == v.Voters() && alive > 0 && s.arbiter.mayContinue(g, view, side)
	}
	return 2*alive > v.Voters() || 2*alive == v.Voters() && lowest
}

// describe tells what every process is about.
func (s *Simulation) describe() string {
	var b strings.Builder
	for _, p := range s.processes {
		switch p.state {
		case ended:
			continue
		case joining:
			fmt.Fprintf(&b, "\n  %v on host %d is no member: %s", p, p.host.index, p.life.describe())
			continue
		}
		state, _ := p.machine.State()
		fmt.Fprintf(&b, "\n  %v rank %d on host %d: view %d, %v, paused %t, leaving %t, program idle %t, unreachable %v, unwritten %d, full %t, poll %+v of %d by %v",
			p, p.self.Rank, p.host.index, p.history.last(), state, p.paused, p.leaving, p.program.idle(),
			p.machine.Unreachable(), p.machine.Stream().Unwritten(), p.machine.Stream().Full(), p.program.poll,
			p.machine.Stream().Stable(), p.machine.Stream().Unanswered())
		for _, q := range s.belonging() {
			if q != p && q.state == running && !p.hasAllOf(q) {
				fmt.Fprintf(&b, "\n    has %d of %d messages of %v", p.history.of(q).next, len(q.program.sent), q)
			}
			if q != p && q.state == running && !p.unicast.hasAllOf(&q.unicast) {
				fmt.Fprintf(&b, "\n    has %d of %d messages to it alone of %v", p.unicast.received[q.id],
					q.unicast.sent[p.key()], q)
			}
		}
	}
	return b.String()
}
