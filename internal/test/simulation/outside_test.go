package simulation

import (
	"errors"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// outside is what a process communicates with processes outside its view: a [lifecycle.Member],
// driven as by internal/driver/catchup, and the requests that it has sent.
type outside struct {
	member  contact
	armed   protocol.Time // what the timer is set to
	removed error         // why the process is no longer a member, while it looks for its successor
	asks    outsideAsks
}

// contact is a [lifecycle.Member], or one with a planted bug.
type contact interface {
	Requested(now protocol.Time, request control.Request) (reply []byte, ok bool)
	Replied(now protocol.Time, token uint64, r lifecycle.Reply)
	Learned(now protocol.Time, from string, err error)
	Early(now protocol.Time, peer protocol.Rank)
	Installed(v *membership.View)
	Evicted(now protocol.Time, view uint64)
	SetSeeds(seeds []string)
	Address(of *membership.Member) string
	Next(now protocol.Time) lifecycle.Action
	Deadline() protocol.Time
}

// beginOutside begins with the first view of a process.
func (p *process) beginOutside(b *lifecycle.Membership) {
	s := p.sim
	member := lifecycle.NewMember(s.now, lifecycle.MemberConfig{
		Self: b.Self, Group: p.machine, Tell: s.plan.begin == founded, Began: b.Began, Elsewhere: b.Elsewhere,
	})
	p.outside = outside{armed: protocol.Never, asks: outsideAsks{since: s.now}, member: member}
	if s.options.Contact != nil {
		p.outside.member = s.options.Contact(p.outside.member, b.Self)
	}
}

// stepOutside carries out what the machine decides.
func (p *process) stepOutside() {
	s, o := p.sim, &p.outside
	if s.plan.apart != admittedAlone {
		o.member.SetSeeds(s.seeds(p)) // names of hosts, whose addresses are looked up each time
	}
	for p.state == running {
		a := o.member.Next(s.now)
		if a == nil {
			break
		}
		p.actOutside(a)
	}
	if due := o.member.Deadline(); p.state == running && due < o.armed {
		o.armed = due
		s.events.push(max(due, s.now), func() {
			if o.armed != due {
				return
			}
			p.do(func() {
				o.armed = protocol.Never
				p.stepOutside()
			})
		})
	}
}

// actOutside carries out an action.
func (p *process) actOutside(action lifecycle.Action) {
	s, m := p.sim, p.outside.member
	switch a := action.(type) {
	case lifecycle.Ask:
		s.checker.asks(p, &a)
		if p.mayCrash() {
			return
		}
		s.request(p, a.Address, a.Request, a.Timeout, func(r lifecycle.Reply) {
			if p.state == running {
				m.Replied(s.now, a.Token, r)
				p.stepOutside()
			}
		})
	case lifecycle.Learn:
		err := member.ErrNotStuck
		p.step(func() { err = p.machine.Learn(s.now, a.Decisions) })
		if err != nil && !errors.Is(err, member.ErrNotStuck) {
			s.checker.fail("%v refuses decisions: %v", p, err)
		}
		s.result.Learned++
		m.Learned(s.now, a.From, err)
	case lifecycle.Remove:
		s.checker.removes(p, &a)
		p.removed(a.View, a.Holder)
	case lifecycle.Move:
		v := p.machine.View()
		p.setPeers(&v)
		p.detector.watch(&v)
	case lifecycle.Ended:
		err := p.outside.removed
		if evicted := new(membership.EvictedError); errors.As(err, &evicted) {
			e := *evicted
			e.Successor = a.Successor
			err = &e
		}
		p.later(func() { p.end(err) })
	}
}

// removed takes that the group has removed this process. A seat believes introductions only: the
// other process may be of another group of this name.
func (p *process) removed(view uint64, holder *membership.Member) {
	if p.state == running {
		p.step(func() { p.machine.Removed(p.sim.now, view, holder) })
	}
}

// evicted ends the membership of a process that was removed, once it has asked others whether a
// process has joined with its ID since.
func (p *process) evicted(err error) {
	if p.outside.removed != nil {
		return
	}
	p.outside.removed = err
	p.detector = p.newDetector()
	for _, l := range p.links {
		l.address, l.dialing = "", false // no member is dialed any more
	}
	evicted := new(membership.EvictedError)
	if !errors.As(err, &evicted) || evicted.Successor != nil {
		p.later(func() { p.end(err) })
		return
	}
	p.later(func() {
		p.hangUp(p.flushAndClose)
		p.outside.member.Evicted(p.sim.now, evicted.By)
		p.stepOutside()
	})
}

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
			from.do(func() {
				from.outside.member.Early(s.now, p.self.Rank)
				from.stepOutside()
			})
		})
	})
}

// earlyTimeout is how long a member waits for the view that has admitted a process which
// connects, before it refuses it, as in internal/driver/tcp.
const earlyTimeout = 2 * second
