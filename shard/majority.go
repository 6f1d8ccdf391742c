package shard

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/services/handoff"
	"github.com/pleach-go/pleach/protocol"
)

// An owner serves only while a majority of the voters of its view answers. Members ask the leader of the
// view, which asks all others for all that ask it: two requests for each member in a fifth of
// Config.Lease. If the leader does not answer, a member asks the others itself.

// The handlers of a member, behind topicPrefix and the name.
const (
	vouchHandler    = "/vouch"    // "I am in this view"
	majorityHandler = "/majority" // "a majority is in this view"
	reportHandler   = "/report"   // what the member holds
	termsHandler    = "/terms"    // its settings, and the base of its tokens
)

var (
	errOtherView  = errors.New("shard: in another view")
	errNoMajority = errors.New("shard: no majority of the view answers")
)

// handle serves the requests of other members.
func (s *Shards) handle() {
	for name, f := range map[string]func(ctx context.Context, view uint64) ([]byte, error){
		vouchHandler:    func(_ context.Context, view uint64) ([]byte, error) { return nil, s.vouch(view) },
		majorityHandler: func(ctx context.Context, view uint64) ([]byte, error) { return nil, s.majority(ctx, view) },
		reportHandler:   func(_ context.Context, view uint64) ([]byte, error) { return s.report(view) },
		termsHandler:    func(_ context.Context, view uint64) ([]byte, error) { return s.terms(view) },
	} {
		s.group.Handle(topicPrefix+s.c.Name+name, func(ctx context.Context, r pleach.Request) ([]byte, error) {
			view, n := binary.Uvarint(r.Data)
			if n <= 0 {
				return nil, handoff.ErrMalformed
			}
			return f(ctx, view)
		})
	}
}

func (s *Shards) unhandle() {
	for _, name := range []string{vouchHandler, majorityHandler, reportHandler, termsHandler} {
		s.group.Handle(topicPrefix+s.c.Name+name, nil)
	}
}

// request asks a member something about a view.
func (s *Shards) request(ctx context.Context, rank int, name string, view uint64) ([]byte, error) {
	return s.group.Request(ctx, pleach.Member{Rank: rank}, topicPrefix+s.c.Name+name, binary.AppendUvarint(nil, view))
}

// vouch says that this process is in a view, and knows of no later one.
func (s *Shards) vouch(view uint64) error {
	current := s.group.View()
	s.mu.Lock()
	defer s.mu.Unlock()
	if current.Number != view || current.Err != nil || !s.machine.Vouches(s.now(), view) {
		return errOtherView
	}
	return nil
}

// report returns what this process holds in a view.
func (s *Shards) report(view uint64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	msg := s.machine.Report()
	if msg.View != view {
		return nil, errOtherView
	}
	return msg.Encode(), nil
}

// terms returns the terms of this process in a view.
func (s *Shards) terms(view uint64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	msg := s.machine.Terms()
	if msg.View != view {
		return nil, errOtherView
	}
	return msg.Encode(), nil
}

// renew asks for a majority, and for reports that are missing, again and again.
func (s *Shards) renew() {
	ticker := time.NewTicker(s.c.period())
	defer ticker.Stop()
	for first := true; ; {
		fresh := false
		select {
		case <-ticker.C:
		case <-s.ask:
			fresh = true
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		view, missing, lacking := s.view, s.machine.Missing(), s.machine.AskTerms()
		s.mu.Unlock()
		if view.Number == 0 {
			continue
		}
		if s.c.Lease > 0 {
			s.confirm(view)
		}
		if first || !fresh { // what was broadcast before the first view of this process is gone
			first = false
			s.fetch(view.Number, reportHandler, missing)
			s.fetch(view.Number, termsHandler, lacking)
		}
	}
}

// confirm tells the machine if a majority is in the view.
func (s *Shards) confirm(view pleach.View) {
	ctx, cancel := context.WithTimeout(s.ctx, 2*s.c.period())
	defer cancel()
	sent := s.now()
	err := errNoMajority
	if leader := view.Leader().Rank; leader != s.group.Rank() {
		asking, done := context.WithTimeout(ctx, s.c.period())
		_, err = s.request(asking, leader, majorityHandler, view.Number)
		done()
	}
	if err != nil {
		sent = s.now()
		err = s.majority(ctx, view.Number)
	}
	if err == nil {
		s.step(func(now protocol.Time) { s.machine.Confirm(now, sent, view.Number) })
	}
}

// fetch asks members for reports or terms that have not arrived. A member without a handler for
// terms has none.
func (s *Shards) fetch(view uint64, name string, missing []handoff.Process) {
	ctx, cancel := context.WithTimeout(s.ctx, s.c.period())
	defer cancel()
	var asked sync.WaitGroup
	for _, p := range missing {
		asked.Go(func() {
			b, err := s.request(ctx, p.Rank, name, view)
			if name == termsHandler && errors.Is(err, pleach.ErrNoHandler) {
				s.step(func(protocol.Time) { s.machine.Absent(p) })
			}
			if err != nil {
				return
			}
			if msg, err := handoff.Decode(p.Rank, s.c.Partitions, b); err == nil {
				s.step(func(now protocol.Time) { s.machine.Receive(now, msg) })
			}
		})
	}
	asked.Wait()
}

// round has those wait together that ask for a majority. One that asks while members are being
// asked waits for the next round: answers count that were given after its question.
type round struct {
	roundMu       sync.Mutex
	running, next *poll
}

// poll is one round.
type poll struct {
	view uint64
	done chan struct{}
	err  error
}

// majority returns nil if a majority of the voters has been in the view after the call.
func (s *Shards) majority(ctx context.Context, view uint64) error {
	s.roundMu.Lock()
	if s.next == nil || s.next.view < view {
		s.next = &poll{view: view, done: make(chan struct{})}
	}
	p := s.next
	if s.running == nil {
		s.startPoll()
	}
	s.roundMu.Unlock()
	select {
	case <-p.done:
		if p.view != view {
			return errOtherView
		}
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startPoll starts the next round, if members ask for one.
func (s *Shards) startPoll() {
	s.running, s.next = s.next, nil
	if p := s.running; p != nil && s.ctx.Err() == nil {
		go func() {
			p.err = s.poll(p.view)
			close(p.done)
			s.roundMu.Lock()
			defer s.roundMu.Unlock()
			s.startPoll()
		}()
	}
}

// poll asks all voters of the view whether they are in it, and returns when a majority is. Observers
// do not decide the next view, so they cannot say that there is none.
func (s *Shards) poll(number uint64) error {
	ctx, cancel := context.WithTimeout(s.ctx, 2*s.c.period())
	defer cancel()
	s.mu.Lock()
	view := s.view
	s.mu.Unlock()
	if view.Number != number || s.vouch(number) != nil {
		return errOtherView
	}
	voters := view.Voters()
	answers := make(chan error, len(voters))
	for _, m := range voters {
		if m.Rank == s.group.Rank() {
			answers <- nil
			continue
		}
		go func() {
			_, err := s.request(ctx, m.Rank, vouchHandler, number)
			answers <- err
		}()
	}
	in := 0
	for range voters {
		if <-answers == nil {
			in++
		}
		if 2*in > len(voters) {
			return nil
		}
	}
	return errNoMajority
}
