package simulation

import (
	"errors"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/unicast"
	"github.com/pleach-go/pleach/internal/services/sequencer"
	"github.com/pleach-go/pleach/protocol"
)

// What services build on a group, in one program: a shared order, on it registers and leases
// with sessions, and beside it shards. Everything that decides is the shipped code of
// internal/services; this drives it, as packages ordered, replicated, lease and shard do.

// services is the part of one process. A process that starts again has another one.
type services struct {
	process *process
	direct  *unicast.Machine
	order   orderPart
	shards  shardPart
	leases  leasePart
}

// Kinds of broadcasts, in their first byte. Those of no service have another one.
const (
	noService byte = iota
	orderService
	shardService
)

// serve begins the services of a process that becomes a member.
func (p *process) serve(v *membership.View) {
	if !p.sim.options.Services {
		return
	}
	s := &services{process: p}
	s.direct = unicast.New(unicast.Config{
		Self: p.self.Rank, View: *v, Window: 1 << 16, MaxRequests: 64,
		Post: s.post, Serve: s.requested, Canceled: s.order.canceled,
	})
	s.leases.begin(s)
	s.order.begin(s)
	s.shards.begin(s)
	p.services = s
}

// post puts a message on the channel to a member.
func (s *services) post(to protocol.Rank, head, body []byte, released func()) {
	if err := s.process.machine.SendDirect(to, head, body, released); err != nil {
		s.process.sim.checker.fail("%v cannot send to rank %d: %v", s.process, to, err)
	}
}

// later does something in a step of its own, a little later: in a process, it is another goroutine.
func (s *services) later(f func()) { s.after(s.process.sim.between(0, 200*microsecond), f) }

// after does something in a step of its own, after a while.
func (s *services) after(d protocol.Time, f func()) {
	p := s.process
	p.sim.after(d, func() {
		p.do(func() {
			if p.state == running {
				p.step(f)
			}
		})
	})
}

// installed takes a view of the group. The goroutines of services learn it at their own time.
func (s *services) installed(v *membership.View) {
	if s == nil {
		return
	}
	s.direct.Install(v)
	s.later(s.order.viewed)
	s.later(s.shards.viewed)
}

// quorumChanged takes that the group has lost its quorum, or has it again.
func (s *services) quorumChanged() {
	if s == nil {
		return
	}
	if !s.active() {
		s.direct.FailUnreachable(s.process.machine.Unreachable(), errReset)
	}
	s.later(s.shards.viewed)
}

// active reports whether the group has a quorum, as far as this member knows.
func (s *services) active() bool {
	state, _ := s.process.machine.State()
	return state == membership.Active
}

// step goes on after the machine of the member has made a step.
func (s *services) step() {
	for m, ok := s.process.machine.DeliverDirect(); ok; m, ok = s.process.machine.DeliverDirect() {
		if err := s.direct.Receive(m.From, m.Data); err != nil {
			s.process.sim.checker.fail("%v refuses a message of rank %d: %v", s.process, m.From, err)
		}
	}
	s.order.send()
	s.shards.send()
}

// received takes a broadcast for the program.
func (s *services) received(view uint64, from protocol.Rank, data []byte) {
	if s == nil || len(data) == 0 {
		return
	}
	switch data[0] {
	case orderService:
		s.order.receive(view, int(from), data[1:])
	case shardService:
		s.shards.receive(int(from), data[1:])
	}
}

// lost takes that broadcasts of a member are missing.
func (s *services) lost(view uint64, from protocol.Rank) {
	if s != nil {
		s.order.joining.Lost(view, int(from))
	}
}

// request asks a member something, for a time at most.
func (s *services) request(to int, name string, data []byte, timeout protocol.Time, done func(unicast.Reply)) {
	over := false
	finish := func(r unicast.Reply) {
		if !over {
			over = true
			s.later(func() { done(r) })
		}
	}
	number, err := s.direct.Request(protocol.Rank(to), name, "", data, finish)
	if err != nil {
		finish(unicast.Reply{Err: err})
		return
	}
	if timeout != protocol.Never {
		s.after(timeout, func() {
			if !over {
				s.direct.Cancel(number)
				finish(unicast.Reply{Err: errTimeout})
			}
		})
	}
}

// The names of requests between members.
const (
	forwardRequest  = "forward"
	ackRequest      = "ack"
	markRequest     = "mark"
	stateRequest    = "state"
	transferRequest = "transfer"
	vouchRequest    = "vouch"
	majorityRequest = "majority"
	reportRequest   = "report"
	termsRequest    = "terms"
)

var errRefusedRequest = errors.New("refused")

// requested serves a request of another member.
func (s *services) requested(r unicast.Request) {
	reply := func(b []byte, err error) {
		if err != nil {
			s.direct.Reply(r.Caller, unicast.Failed, []byte(err.Error()))
			return
		}
		s.direct.Reply(r.Caller, unicast.OK, b)
	}
	s.later(func() {
		switch from := int(r.Rank); r.Name {
		case forwardRequest:
			reply(nil, s.order.machine.Accept(from, r.Data))
		case ackRequest:
			reply(nil, s.order.machine.Acknowledge(from, r.Data))
		case markRequest:
			reply(nil, s.order.joining.MarkAsked(r.Data))
		case stateRequest, transferRequest:
			s.order.stateAsked(r, reply)
		case vouchRequest:
			reply(nil, s.shards.vouch(decodeView(r.Data)))
		case majorityRequest:
			s.shards.poll(decodeView(r.Data), func(err error) { reply(nil, err) })
		case reportRequest:
			reply(s.shards.report(decodeView(r.Data)))
		case termsRequest:
			reply(s.shards.terms(decodeView(r.Data)))
		}
	})
}

// members returns the members of the view, the voters first.
func (s *services) members() (members []sequencer.Member, voters int) {
	v := s.process.machine.View()
	for _, m := range v.Members.All() {
		member := sequencer.Member{Rank: int(m.Rank), Incarnation: m.Incarnation}
		if m.Observer {
			members = append(members, member)
		} else {
			members = slices.Insert(members, voters, member)
			voters++
		}
	}
	return members, voters
}
