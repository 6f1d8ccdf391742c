package simulation

import (
	"errors"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
)

const (
	// earlyTimeout is how long a member waits for the view that has admitted a process which
	// connects, before it refuses it, as in internal/driver/tcp.
	earlyTimeout = 2 * second
	// catchUpInterval is how often a member that is behind requests decisions, and
	// catchUpTries how many times.
	catchUpInterval = 2 * second
	catchUpTries    = 5
)

// awaitView waits for the view that has admitted a process. If it does not come, that process,
// if it is a member, tells this one to catch up.
func (p *process) awaitView(from *process) {
	if p.awaiting {
		return
	}
	p.awaiting = true
	s := p.sim
	s.after(earlyTimeout, func() {
		p.do(func() {
			p.awaiting = false
			if p.role == nil || from.state != running || from.self.Incarnation <= p.role.View().Number {
				return
			}
			r := control.CatchUp{View: from.self.Incarnation, Address: from.address}
			from.do(func() { s.request(from, p.address, r, seedTimeout, func(lifecycle.Reply) {}) })
		})
	})
}

// catchUpWith begins to catch up with a process that has joined in a later view, unless this
// member does so already.
func (p *process) catchUpWith(r *control.CatchUp) []byte {
	if !p.machine.Stuck() {
		return control.Refuse(&control.Refusal{Status: control.Retry, Text: member.ErrGoesOn.Error()})
	}
	if !p.catchingUp {
		p.catchingUp = true
		p.catchUp(r, catchUpTries)
	}
	return control.Accept(nil)
}

// catchUp requests decisions of a process until this member has its view.
func (p *process) catchUp(r *control.CatchUp, tries int) {
	if p.state != running {
		return
	}
	if tries == 0 || p.machine.View().Number >= r.View {
		p.catchingUp = false
		return
	}
	p.sim.request(p, r.Address, control.Decisions{}, seedTimeout, func(reply lifecycle.Reply) {
		var d membership.Decisions
		if reply.Err == nil {
			d, reply.Err = membership.DecodeDecisions(reply.Body)
		}
		if reply.Err != nil || p.state != running || !p.learn(d) {
			p.catchingUp = false
			return
		}
		p.sim.after(catchUpInterval, func() { p.do(func() { p.catchUp(r, tries-1) }) })
	})
}

// learn takes decisions of a process, and reports whether they are of use.
func (p *process) learn(d membership.Decisions) bool {
	err := member.ErrGoesOn
	p.step(func() { err = p.machine.Learn(p.sim.now, d) })
	if err != nil && !errors.Is(err, member.ErrGoesOn) {
		p.sim.checker.fail("%v refuses decisions: %v", p, err)
	}
	return err == nil
}
