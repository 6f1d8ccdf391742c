package simulation

import (
	"errors"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Requests that need no view go over connections of their own, as in package control.

var (
	errTimeout = errors.New("no reply in time")
	errRefused = errors.New("no process listens")
	errReset   = errors.New("the process has ended")
)

// retransmission is how long a packet takes that was lost once.
const retransmission = 200 * millisecond

// request sends a request of a process to an address, and passes the reply on.
func (s *Simulation) request(p *process, address string, request control.Request, timeout protocol.Time,
	reply func(lifecycle.Reply),
) {
	done := false
	finish := func(r lifecycle.Reply) {
		if !done {
			done = true
			p.do(func() {
				if s.options.Reply != nil {
					s.options.Reply(request, &r)
				}
				reply(r)
			})
		}
	}
	s.after(timeout, func() { finish(lifecycle.Reply{Err: errTimeout}) })
	to := s.hostAt(address)
	back := func(r lifecycle.Reply) { s.transfer(to, p.host, &done, func() { finish(r) }) }
	s.transfer(p.host, to, &done, func() {
		q := to.at(address)
		if q == nil {
			back(lifecycle.Reply{Err: errRefused, Gone: true})
			return
		}
		q.clients = append(q.clients, func() { back(lifecycle.Reply{Err: errReset}) })
		q.do(func() {
			q.requested(request, func(b []byte) {
				if !q.mayCrash() {
					back(openReply(request, b))
				}
			})
		})
	})
}

// transfer carries something from a host to another, unless it is too late.
func (s *Simulation) transfer(from, to *host, late *bool, arrive func()) {
	var try func()
	try = func() {
		switch {
		case *late:
		case from.reaches(to):
			arrive()
		default:
			s.after(retransmission, try)
		}
	}
	if !*late {
		s.after(s.latency(), try)
	}
}

// openReply opens a reply, and judges an error as the root package does.
func openReply(request control.Request, b []byte) (r lifecycle.Reply) {
	if _, ok := request.(control.Founding); ok {
		return lifecycle.Reply{Body: b}
	}
	r.Body, r.Err = control.Open(b)
	refusal := new(control.Refusal)
	refused := errors.As(r.Err, &refusal) && refusal.Status == control.Refused
	r.Final = refused || errors.As(r.Err, new(*control.InUse)) || errors.As(r.Err, new(*control.Version)) ||
		errors.As(r.Err, new(*control.TooOld))
	r.Permanent = r.Final
	return r
}

// requested answers a request.
func (p *process) requested(request control.Request, answer func([]byte)) {
	s := p.sim
	switch {
	case p.life.machine != nil:
		answer(p.life.machine.Requested(s.now, request))
		p.live()
		return
	case p.state != running:
		answer(control.Refuse(&control.Refusal{Status: control.Retry, Text: "not a member yet"}))
		return
	}
	if r, ok := request.(control.Join); ok {
		p.reach(&r, answer)
		return
	}
	reply, ok := p.outside.member.Requested(s.now, request)
	if !ok {
		reply = control.Refuse(errors.New("it is a member"))
	}
	s.checker.answers(p, request, reply)
	answer(reply)
	p.stepOutside()
}

// reach lets a candidate join that confirms its request.
func (p *process) reach(r *control.Join, answer func([]byte)) {
	s := p.sim
	s.request(p, r.Candidate.Address, control.Confirm{Candidate: r.Candidate}, lifecycle.ConfirmTimeout,
		func(confirmed lifecycle.Reply) {
			switch {
			case confirmed.Final:
				answer(control.Refuse(confirmed.Err))
			case confirmed.Err != nil || p.state != running:
				answer(control.Refuse(&control.Refusal{Status: control.Unreachable, Text: "the candidate does not confirm"}))
			default:
				p.step(func() {
					p.machine.Join(s.now, r.Candidate, r.Replace, func(a member.JoinAnswer) {
						answer(encodeAnswer(&a))
						p.later(func() { s.admitted(p, &a) })
					})
				})
			}
		})
}

// encodeAnswer encodes the answer to a candidate.
func encodeAnswer(a *member.JoinAnswer) []byte {
	var inUse *membership.InUseError
	switch {
	case errors.As(a.Err, &inUse):
		h := &inUse.Holder
		return control.Refuse(&control.InUse{
			ID: h.Identity, Rank: h.Rank, Address: h.Address, Incarnation: h.Incarnation,
			View: inUse.View,
		})
	case a.Err != nil:
		return control.Refuse(a.Err)
	}
	return (&control.Admission{View: a.View, Rank: a.Rank, Decisions: a.Decisions, Start: a.Start}).Encode()
}
