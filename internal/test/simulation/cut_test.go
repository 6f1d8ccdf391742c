package simulation

import (
	"slices"

	"github.com/pleach-go/pleach/internal/machine/membership"
)

// A group whose members all run well is cut in two, once, cleanly and for a while. The
// members on the side without a quorum know it before the other side has its next view.

// planCut leaves a plan nothing else that goes wrong.
func (p *plan) planCut() {
	p.begin, p.durable, p.moves, p.fragile, p.troubles = given, false, false, 0, 0
	p.end = 8 * second
}

// scheduleCut schedules the cut, at a time when the members have met.
func (s *Simulation) scheduleCut() {
	s.after(s.between(2*second, 3*second), func() {
		few, others := s.partition(s.plan.end-s.now, true)
		if 2*len(few) == len(s.hosts) && slices.Contains(few, s.hosts[0]) {
			few = others // half of the members are a quorum with the lowest rank
		}
		for _, h := range few {
			s.minority = append(s.minority, h.process)
		}
	})
}

// checkCut checks, when the other side has a view, that the members that it leaves behind
// have lost their quorum.
func (s *Simulation) checkCut(by *process, v *membership.View) {
	if s.calm {
		return
	}
	for _, p := range s.minority {
		if p.state != running || v.Holds(p.self.Rank, p.self.Incarnation) {
			continue
		}
		s.result.Told++
		if reachable, needed, ok := p.machine.Quorum(); ok {
			s.checker.fail("%v installs %v, and %v still has its quorum: %d reachable, %d needed", by, v, p, reachable, needed)
		}
	}
}
