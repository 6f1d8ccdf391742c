package simulation

import (
	"slices"

	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/protocol"
)

// Groups some of whose members can go on only with the help of processes outside their views.

// apartness is what separates the members of a group.
type apartness int

const (
	_ apartness = iota // together
	// admittedAlone: members crash as they let a candidate join, so that nobody but the candidate
	// knows the view, and too few are left who know the one before. Members have no seeds.
	admittedAlone
	// movedAway: while a member is cut off, all others are started again at other addresses, and
	// maybe under other IDs.
	movedAway
	// toldOnly: the first process knows no other address, and is started again.
	toldOnly
)

// planApart separates members, and lets little else go wrong.
func (s *Simulation) planApart() {
	p := &s.plan
	p.apart = apartness(1 + s.rng.IntN(3))
	p.durable, p.doubles, p.fragile, p.end = false, false, 0, 4*second
	p.size, p.troubles = 3+s.rng.IntN(5), s.rng.IntN(2)
	switch p.apart {
	case admittedAlone:
		p.begin, p.troubles = created, 0
	case movedAway:
		p.begin, p.moves, p.end = created, true, timeOfMoves(p.size)
	case toldOnly:
		p.begin, p.moves = founded, s.rng.IntN(2) == 0
	}
}

// Times of what separates members: the others install a view without a silent one after a while.
const (
	settledAt = 2 * second
	silentFor = 4 * second
	eachMove  = second
)

func timeOfMoves(size int) protocol.Time {
	return settledAt + silentFor + protocol.Time(size+2)*eachMove
}

// scheduleApart schedules what separates members.
func (s *Simulation) scheduleApart() {
	switch s.plan.apart {
	case admittedAlone:
		for at := second; at < s.plan.end; at += second / 2 {
			s.after(at, func() { s.startAgain(s.hosts[s.rng.IntN(len(s.hosts))]) })
		}
	case movedAway:
		alone := s.hosts[s.rng.IntN(len(s.hosts))]
		s.after(settledAt, func() {
			for _, h := range s.hosts {
				s.deafen(h, alone, s.plan.end-s.now)
				s.deafen(alone, h, s.plan.end-s.now)
			}
		})
		others := slices.DeleteFunc(slices.Clone(s.hosts), func(h *host) bool { return h == alone })
		s.after(settledAt+silentFor, func() { s.moveAll(others, s.rng.IntN(2) == 0) })
	case toldOnly:
		s.after(s.between(second, s.plan.end), func() { s.startAgain(s.hosts[0]) })
	}
}

// moveAll starts the processes of hosts again at other addresses, one after the other, each when all
// are members: candidates keep the addresses that they began with.
func (s *Simulation) moveAll(hosts []*host, renamed bool) {
	for _, h := range s.hosts {
		if h.process == nil || h.process.state != running {
			s.after(eachMove/10, func() { s.moveAll(hosts, renamed) })
			return
		}
	}
	if len(hosts) == 0 || s.calm {
		return
	}
	if p := hosts[0].process; renamed {
		p.crash()
		s.start("new-"+p.identity, p.host).boot()
	} else {
		s.startAgain(p.host)
	}
	s.after(eachMove, func() { s.moveAll(hosts[1:], renamed) })
}

// startAgain crashes the process of a host, and starts another one.
func (s *Simulation) startAgain(h *host) {
	if p := h.process; p != nil {
		p.crash()
		s.restartAfter(s.between(millisecond, 200*millisecond), p)
	}
}

// admitted crashes members as one of them lets a candidate join: all that know the view, and of
// the others so many that they cannot decide another one, but can together with the candidate.
func (s *Simulation) admitted(by *process, a *member.JoinAnswer) {
	if s.plan.apart != admittedAlone || a.Err != nil || s.calm || s.rng.IntN(2) == 0 {
		return
	}
	var before []*process
	for _, p := range s.processes {
		if p.state == running && p.group == by.group && p.history.last() < a.View.Number {
			before = append(before, p)
		}
	}
	slices.SortFunc(before, func(p, q *process) int { return int(p.self.Rank - q.self.Rank) })
	former, candidates := by.group.views[a.View.Number-1], 0
	for _, m := range a.View.Members.All() {
		if m.Incarnation == a.View.Number {
			candidates++
		}
	}
	size := former.Members.Len()
	for 2*len(before) > size {
		before = before[1:]
	}
	if len(before) == 0 || 2*len(before) == size && before[0].self.Rank == former.Members.At(0).Rank {
		return // half of the members decide if they have the lowest rank
	}
	if 2*(len(before)+candidates) <= a.View.Members.Len() {
		return // they cannot go on with the candidates either
	}
	for _, p := range s.processes {
		if p.state == running && p.group == by.group && !slices.Contains(before, p) {
			p.crash()
		}
	}
}
