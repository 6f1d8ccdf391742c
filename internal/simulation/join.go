package simulation

import (
	"errors"

	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

// A process joins as pleach.Join does: it asks one seed after the other, backs off, and
// ends if another process has its identity.

const requestTimeout = 2 * second

// candidate is a process as it asks to join.
func (p *process) candidate() membership.Member {
	return membership.Member{Identity: p.identity, Address: p.host.address, Nonce: p.nonce, Version: p.version}
}

// join asks the next seed.
func (p *process) join() {
	s := p.sim
	if p.state != joining {
		return
	}
	to := p.nextSeed()
	p.joinTry++
	try := p.joinTry
	next := func(after protocol.Time) {
		s.after(after, func() {
			p.do(func() {
				if p.joinTry == try {
					p.join()
				}
			})
		})
	}
	next(requestTimeout)
	s.after(s.latency(), func() {
		if !p.host.reaches(to) {
			return
		}
		asked := to.process
		if asked == nil || asked.state != running {
			next(s.between(20*millisecond, 100*millisecond))
			return
		}
		asked.do(func() { asked.answer(p, try, next) })
	})
}

// answer passes a join request to the member, and its answer back.
func (p *process) answer(from *process, try int, again func(protocol.Time)) {
	s := p.sim
	p.step(func() {
		p.machine.Join(s.now, from.candidate(), from.replace, func(a member.JoinAnswer) {
			s.after(s.latency(), func() {
				if p.host.reaches(from.host) {
					from.do(func() { from.answered(a, try, again) })
				}
			})
		})
	})
}

// answered takes the answer to a join request.
func (p *process) answered(a member.JoinAnswer, try int, again func(protocol.Time)) {
	switch {
	case p.state != joining || p.joinTry != try:
	case errors.As(a.Err, new(*membership.InUseError)):
		p.sim.record(p, "is refused: %v", a.Err)
		p.vanish(nil)
	case a.Err != nil:
		if p.upgradeTo(a.Err) {
			p.sim.record(p, "is upgraded: %v", a.Err)
		}
		again(p.sim.between(50*millisecond, 500*millisecond))
	default:
		self, _ := a.View.Member(a.Rank)
		p.enter(self, a.View, a.Start, a.Decisions)
	}
}
