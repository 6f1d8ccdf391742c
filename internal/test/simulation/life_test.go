package simulation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// life is a process until it is a member: a [lifecycle.Machine], as the root package drives
// it, and the seat beside it.
type life struct {
	machine *lifecycle.Machine     // nil: the process is a member, or its membership is given
	seat    *member.RestartedVoter // nil: the process is a candidate
	armed   protocol.Time          // what the timer is set to

	// What the process saves beside its place.
	next   uint64 // nonce under which it asks for its place; 0: it has it
	starts uint64 // processes that have had the nonce
	former *membership.SavedVote
	last   *membership.View // installed
	seeds  []string
}

// boot starts a process with what its disk has.
func (p *process) boot() {
	s, l := p.sim, &p.life
	place, ok := p.load()
	if !ok {
		return
	}
	l.seeds = s.seeds(p)
	c := lifecycle.Config{
		Self: membership.Member{
			Identity: p.identity, Address: p.address, Nonce: l.next, Version: p.version,
			Observer: p.observer,
		},
		Seeds: l.seeds, Replace: p.replace, Durable: s.plan.durable, Place: place, Former: l.former,
		NewNonce: s.nonce, Speaks: p.speaks, Arbiter: s.options.Arbiter,
	}
	if s.plan.begin == founded {
		c.Expect, c.Starts = s.plan.size-s.roles.observers, l.starts
	}
	if s.options.Live != nil {
		s.options.Live(&c)
	}
	l.machine = lifecycle.New(c)
	l.machine.Start(s.now)
	p.live()
}

// speaks returns an error if the process does not speak a protocol version.
func (p *process) speaks(version uint16) error {
	if version > p.version {
		return &control.Version{Version: version}
	}
	return nil
}

// live carries out what the machine of a process decides.
func (p *process) live() {
	s, l := p.sim, &p.life
	for m := l.machine; m != nil && m == l.machine; {
		a := m.Next(s.now)
		if a == nil {
			break
		}
		p.act(a)
	}
	if l.machine == nil {
		return
	}
	if l.seat != nil { // a process may have moved
		v := l.seat.View()
		p.setPeers(&v)
		p.detector.watch(&v)
	}
	if due := l.machine.Deadline(); due < l.armed {
		l.armed = due
		s.events.push(max(due, s.now), func() {
			if l.armed != due {
				return
			}
			p.do(func() {
				l.armed = protocol.Never
				p.live()
			})
		})
	}
}

// act carries out an action.
func (p *process) act(action lifecycle.Action) {
	s, l := p.sim, &p.life
	switch a := action.(type) {
	case lifecycle.Ask:
		if p.mayCrash() {
			return
		}
		s.request(p, a.Address, a.Request, a.Timeout, func(r lifecycle.Reply) {
			if l.machine != nil {
				l.machine.Replied(s.now, a.Token, r)
				p.live()
			}
		})
	case lifecycle.Stand:
		s.record(p, "is a candidate")
		p.rest()
	case lifecycle.Hold:
		p.hold(&a)
	case lifecycle.Suspect:
		p.step(func() { p.role.Report(s.now, member.Report{Rank: a.Rank, Incarnation: a.Incarnation}) })
	case lifecycle.Trust:
		p.step(func() { p.role.Report(s.now, member.Report{Rank: a.Rank, Incarnation: a.Incarnation, Alive: true}) })
	case lifecycle.Forget:
		s.record(p, "gives its place up")
		_ = p.save(nil, true)
	case lifecycle.Become:
		if a.Began != nil {
			s.record(p, "begins a group with %d others as rank %d", len(a.Began)-1, a.Self.Rank)
		} else {
			s.record(p, "becomes rank %d, incarnation %d", a.Self.Rank, a.Self.Incarnation)
		}
		p.enter(&a.Membership)
	case lifecycle.Fail:
		p.failed(a.Err)
	}
}

// failed ends a process that cannot be a member: another one has its identity, or it is too
// old, and is upgraded as by an operator.
func (p *process) failed(err error) {
	s, version := p.sim, new(control.Version)
	switch {
	case errors.As(err, new(*control.InUse)):
		s.record(p, "is refused: %v", err)
		p.close()
	case errors.As(err, &version):
		s.record(p, "is upgraded: %v", err)
		p.host.version = version.Version
		p.close()
		s.restartAfter(s.between(millisecond, 100*millisecond), p)
	default:
		if s.roles.refused(p, err) {
			return
		}
		s.checker.fail("%v fails: %v", p, err)
	}
}

// hold makes the process the seat of a place.
func (p *process) hold(a *lifecycle.Hold) {
	s, l := p.sim, &p.life
	p.rest()
	p.self, l.next, l.former = a.Place.Self, a.Candidate.Nonce, nil
	s.result.Seats++
	s.record(p, "holds its place in %v as incarnation %d", &a.Place.View, p.self.Incarnation)
	if p.save(a.Place.Encode(), true) != nil {
		return
	}
	s.checker.belongs(p, &a.Place.View)
	var err error
	l.seat, err = member.NewRestartedVoter(member.RestartedVoterConfig{
		Saved: a.Place, Candidate: a.Candidate, Membership: membership.Config{FlatThreshold: s.plan.flat},
		Heartbeat: heartbeat.Config{Interval: s.plan.heartbeat}, Save: p.saveLater,
		Ask: p.asks(),
		OnView: func(v *membership.View) {
			if p.state == ended {
				return
			}
			s.record(p, "is still a seat: %v", v)
			s.checker.decided(p, v)
			l.machine.Moved(s.now, v, l.seat.Machine().DecisionsUpTo(v.Number))
			p.setPeers(v)
			p.detector.watch(v)
		},
	})
	if err != nil {
		s.checker.fail("%v cannot hold its place: %v", p, err)
		return
	}
	p.role = l.seat
	p.setPeers(&a.Place.View)
	p.detector.watch(&a.Place.View)
	p.step(func() { l.seat.Start(s.now) })
	p.serveBacklog()
}

// lookAtSeat tells the machine what has become of the seat.
func (p *process) lookAtSeat() {
	l := &p.life
	if p.role == nil || l.seat == nil {
		return
	}
	answer, over := l.seat.Outcome()
	switch {
	case answer != nil:
		l.machine.Admitted(p.sim.now, answer)
	case over != nil:
		l.machine.Over(p.sim.now)
	default:
		if refused := l.seat.Refused(); l.machine != nil {
			l.machine.Refused(refused)
		}
		return
	}
	p.later(p.live)
}

// where returns the address of a member, as far as the process knows.
func (p *process) where(m *membership.Member) string {
	switch {
	case p.outside.member != nil:
		return p.outside.member.Address(m)
	case p.life.machine != nil && !p.sim.has(addressKept):
		return p.life.machine.Address(m)
	}
	return m.Address
}

// nonce draws a nonce.
func (s *Simulation) nonce() uint64 {
	s.nonces++
	return s.nonces
}

// move gives the next process of a host another address.
func (s *Simulation) move(h *host) {
	h.address = fmt.Sprintf("h%d:%d", h.index, len(s.addresses)+1)
	s.addresses[h.address] = h
}

// seeds returns the addresses that a process begins with: the last ones of the other hosts.
func (s *Simulation) seeds(p *process) (seeds []string) {
	for _, h := range s.hosts {
		if s.plan.apart == toldOnly && p.host.index == 0 {
			break
		}
		if h != p.host && h.address != "" {
			seeds = append(seeds, h.address)
		}
	}
	slices.Sort(seeds)
	return seeds
}

// describe tells what a process is about that is no member.
func (l *life) describe() string {
	switch {
	case l.seat != nil:
		v := l.seat.View()
		reachable, needed, _ := l.seat.Quorum()
		return fmt.Sprintf("a seat of %v, %d of %d reachable", &v, reachable, needed)
	case l.machine != nil:
		return fmt.Sprintf("a candidate: %v", l.machine.Waiting())
	}
	return "it has not begun"
}
