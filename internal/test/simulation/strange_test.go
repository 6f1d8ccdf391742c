package simulation

import (
	"bytes"
	"math/rand/v2"

	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// What no correct process does, and what is rare: detectors that accuse their own process, or
// ranks that no member has; frames that come twice, or long after others; frames that no member
// sends; and processes that lack descriptors for as long as they are members.

// strangeness is what a seed adds to its plan, from random numbers of its own.
type strangeness struct {
	rng      *rand.Rand
	impaired map[*process]bool
}

// beginStrange schedules what is strange.
func (s *Simulation) beginStrange() {
	s.strange.impaired = make(map[*process]bool)
	for range 8 {
		s.after(protocol.Time(s.strange.rng.Int64N(int64(s.plan.end))), s.accuse)
	}
}

// accuse has the detector of a process accuse the process itself, or a rank that is none's.
func (s *Simulation) accuse() {
	p := s.hosts[s.strange.rng.IntN(len(s.hosts))].process
	if p == nil || p.role == nil {
		return
	}
	r := member.Report{Rank: p.self.Rank, Incarnation: p.self.Incarnation, Silent: s.strange.rng.IntN(2) == 0}
	if s.strange.rng.IntN(3) == 0 {
		r.Rank = p.role.View().Slots + protocol.Rank(s.strange.rng.IntN(3))
	}
	p.do(func() { p.step(func() { p.role.Report(s.now, r) }) })
}

// impair has a process lack descriptors from its first view on.
func (p *process) impair() {
	s := p.sim
	if s.strange.rng == nil || s.calm || s.strange.rng.IntN(4) > 0 {
		return
	}
	s.record(p, "lacks descriptors")
	s.strange.impaired[p] = true
	p.step(func() { p.machine.SetImpaired(s.now, true) })
}

// endStrange gives all processes what they lack.
func (s *Simulation) endStrange() {
	for _, p := range s.processes {
		if s.strange.impaired[p] && p.state == running {
			p.do(func() { p.step(func() { p.machine.SetImpaired(s.now, false) }) })
		}
	}
}

// receiveStrange has a process get frames that it should not get, beside one that it gets.
func (p *process) receiveStrange(from protocol.Rank, frame []byte) {
	s := p.sim
	if s.strange.rng == nil || s.calm {
		return
	}
	switch role := p.role; s.strange.rng.IntN(30) {
	case 0:
		frame = bytes.Clone(frame)
		s.after(protocol.Time(s.strange.rng.Int64N(int64(second))), func() {
			p.do(func() {
				if p.role == role {
					p.step(func() { _ = role.Receive(s.now, from, frame) })
				}
			})
		})
	case 1:
		strange := append([]byte{viewFrame}, frame[min(1, len(frame)-1):]...)
		if frame[0] == viewFrame {
			strange = frame[:1+s.strange.rng.IntN(len(frame)-1)]
		}
		if err := role.Receive(s.now, from, strange); err == nil && len(strange) > 1 && frame[0] == viewFrame {
			s.checker.fail("%v takes %d of %d bytes of a frame", p, len(strange), len(frame))
		}
	}
}

// checkStrange checks that no view leaves a member out because of itself, or because a process
// has not heard from it that lacks descriptors.
func (c *checker) checkStrange(p *process, v *membership.View) {
	if c.sim.strange.rng == nil || p.machine == nil {
		return
	}
	for change := range p.machine.Changes {
		by := c.member(p, change.By)
		switch {
		case change.Cause == membership.Suspected && change.By == change.Member.Rank:
			c.fail("%v leaves %s out, which has accused itself", v, change.Member.Identity)
		case change.Cause == membership.Unresponsive && by != nil && c.sim.strange.impaired[by] && !c.sim.calm:
			c.fail("%v leaves %s out because of %v, which lacks descriptors", v, change.Member.Identity, by)
		}
	}
}

// member returns the process that has a rank in the view before the one that is being installed.
func (c *checker) member(p *process, rank protocol.Rank) *process {
	if len(p.history.views) == 0 {
		return nil
	}
	before := p.group.views[p.history.last()]
	m, ok := before.Member(rank)
	if !ok {
		return nil
	}
	return p.group.members[identity{m.Identity, m.Incarnation}]
}
