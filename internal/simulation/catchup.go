package simulation

import (
	"errors"

	"github.com/pleach-go/pleach/internal/member"
)

// earlyTimeout is how long a member waits for the view that has admitted a process which
// connects, before it asks that process for it, as in transport/tcp. It is also how often
// it asks.
const earlyTimeout = 2 * second

// catchUp asks a process that a later view has admitted for the decisions that led there,
// until this member is in that view.
func (p *process) catchUp(from *process) {
	if p.catchingUp {
		return
	}
	p.catchingUp = true
	p.sim.after(earlyTimeout, func() {
		p.do(func() {
			p.catchingUp = false
			if from.state != running || from.incarnation <= p.machine.View().Number || !p.host.reaches(from.host) {
				return
			}
			from.do(func() { from.pass(p) })
			p.catchUp(from)
		})
	})
}

// pass sends a member that is behind the last decisions.
func (p *process) pass(to *process) {
	s, d := p.sim, p.machine.Decisions()
	s.after(s.latency(), func() {
		if !p.host.reaches(to.host) {
			return
		}
		to.do(func() {
			to.step(func() {
				if err := to.machine.Learn(s.now, d); err != nil && !errors.Is(err, member.ErrGoesOn) {
					s.checker.fail("%v refuses decisions of %v: %v", to, p, err)
				}
			})
		})
	})
}
