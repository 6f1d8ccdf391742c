package pleach

// This file drives package lifecycle: it carries out what the machine of a process decides,
// from the start of the process until it is a member.

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/dedup"
	"github.com/pleach-go/pleach/internal/lifecycle"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/tcp"
)

// logInterval is how often a process logs what it waits for.
const logInterval = 5 * time.Second

// life drives the machine of a process that is no member yet.
type life struct {
	config   *Config
	state    *initialState
	listener net.Listener
	start    time.Time
	logged   time.Time
	changed  chan struct{} // there may be something to do
	ctx      context.Context
	cancel   context.CancelFunc
	asking   sync.WaitGroup

	// What the process listens as: a seat, or a candidate.
	seat *seat
	lent *lentListener // the socket, as it is lent to one of them

	mu      sync.Mutex
	machine *lifecycle.Machine
	causes  dedup.Causes
}

// become finds the group of this process. The process holds the place that it has, joins
// members, or begins a group with others, until it is a member.
func become(c *Config, ctx context.Context, s *initialState, listener net.Listener) error {
	place, err := s.open(c)
	if err != nil {
		return err
	}
	if c.Expect > 0 {
		slices.Sort(s.seeds)
		s.seeds = slices.Compact(s.seeds)
	}
	l := newLife(c, s, place, listener)
	defer l.close()
	return l.run(ctx)
}

// newLife makes the machine of a process.
func newLife(c *Config, s *initialState, place *membership.Seat, listener net.Listener) *life {
	l := &life{config: c, state: s, listener: listener, start: time.Now(), changed: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	m := lifecycle.Config{
		Self: s.self, Seeds: s.seeds, Expect: c.Expect, Replace: c.Replace, Durable: s.data != nil, Place: place,
		Former: s.former, NewNonce: newNonce, Speaks: speaks,
	}
	if s.data != nil {
		m.Starts = s.data.Starts()
	}
	l.machine = lifecycle.New(m)
	return l
}

// run carries out what the machine decides.
func (l *life) run(ctx context.Context) error {
	l.mu.Lock()
	l.machine.Start(l.now())
	l.mu.Unlock()
	for {
		for {
			l.mu.Lock()
			action := l.machine.Next(l.now())
			l.mu.Unlock()
			if action == nil {
				break
			}
			if done, err := l.do(action); done || err != nil {
				return err
			}
		}
		l.mu.Lock()
		timer := time.NewTimer(time.Duration(min(l.machine.Deadline()-l.now(), protocol.Time(time.Second))))
		waiting := l.machine.Waiting()
		l.mu.Unlock()
		l.logWaiting(waiting)
		select {
		case <-l.changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return l.interrupted(ctx, waiting)
		}
		l.look()
	}
}

// interrupted says what the process has waited for in vain.
func (l *life) interrupted(ctx context.Context, waiting error) error {
	switch {
	case l.seat != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), l.seat.waiting())
	case waiting != nil:
		return fmt.Errorf("%w; %w", ctx.Err(), waiting)
	}
	return ctx.Err()
}

// logWaiting logs what the process waits for, now and then.
func (l *life) logWaiting(waiting error) {
	if waiting != nil && l.config.Expect > 0 && l.seat == nil && time.Since(l.logged) > logInterval {
		l.logged = time.Now()
		l.config.Logger.Info("looking for the group, or for processes to begin it with", "group", l.config.Group, "found", waiting)
	}
}

// look tells the machine what has become of the seat.
func (l *life) look() {
	if l.seat == nil {
		return
	}
	answer, over := l.seat.outcome()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case answer != nil:
		l.machine.Admitted(l.now(), answer)
	case over:
		l.machine.Over(l.now())
	}
}

// do carries out an action. It reports whether the process is a member.
func (l *life) do(action lifecycle.Action) (member bool, err error) {
	s := l.state
	switch a := action.(type) {
	case lifecycle.Ask:
		l.asking.Go(func() { l.ask(&a) })
	case lifecycle.Stand:
		err = l.stand()
	case lifecycle.Hold:
		l.rest()
		s.self = a.Candidate
		if err = s.data.Begin(a.Place, a.Candidate.Nonce); err != nil {
			break
		}
		l.lent = lend(l.listener)
		l.seat, err = l.config.newSeat(l, a.Place, l.lent)
	case lifecycle.Suspect:
		l.report(detect.Report{Rank: a.Rank, Incarnation: a.Incarnation, Cause: errGone})
	case lifecycle.Trust:
		l.report(detect.Report{Rank: a.Rank, Incarnation: a.Incarnation, Alive: true})
	case lifecycle.Forget:
		l.config.Logger.Info("the old place is over: too few of its view can come back", "group", l.config.Group)
		err = s.data.Save(nil, true)
	case lifecycle.Become:
		if s.candidate == nil {
			l.rest()
		} else {
			l.lent.keep()
		}
		s.self, s.view, s.start, s.decisions, s.began = a.Self, a.View, a.Start, a.Decisions, a.Began
		l.config.Logger.Info("group joined", "group", l.config.Group, "view", a.View.Number, "begun", a.Began != nil)
		return true, nil
	case lifecycle.Fail:
		err = a.Err
	}
	return false, err
}

// report tells the seat, if there is one, what has become of a member.
func (l *life) report(r detect.Report) {
	if l.seat != nil {
		l.seat.report(r)
	}
}

// stand makes the process listen as a candidate.
func (l *life) stand() (err error) {
	l.rest()
	l.lent = lend(l.listener)
	l.state.candidate, err = tcp.NewCandidate(clientOf(l.config, l.lent), func(from transport.Client, b []byte) []byte {
		r, err := openRequest(l.config, nil, from, b)
		if err != nil {
			return refuse(err)
		}
		return l.requested(r)
	})
	return err
}

// rest ends the seat or the candidate. The socket goes on listening.
func (l *life) rest() {
	switch {
	case l.seat != nil:
		l.seat.close()
	case l.state.candidate != nil:
		_ = l.state.candidate.Close()
	default:
		return
	}
	l.seat, l.state.candidate = nil, nil
	l.lent.giveBack()
}

// close ends what has not become part of a member.
func (l *life) close() {
	l.cancel()
	if l.seat != nil {
		l.rest()
	} else if l.state.candidate != nil {
		l.lent.keep()
	}
	l.asking.Wait()
}

func (l *life) now() protocol.Time { return protocol.Time(time.Since(l.start)) + 1 }

// ask sends a request.
func (l *life) ask(a *lifecycle.Ask) {
	ctx, cancel := context.WithTimeout(l.ctx, time.Duration(a.Timeout))
	defer cancel()
	var r lifecycle.Reply
	var from []*x509.Certificate
	r.Body, from, r.Err = requestKnown(ctx, l.config, a.Address, a.Request)
	if _, ok := a.Request.(control.Founding); r.Err == nil && !ok {
		r.Body, r.Err = openReply(r.Body)
	}
	if r.Err == nil {
		r.Err = believe(l.config, from, a.Request, r.Body)
	}
	if r.Err != nil {
		r.Gone, r.Permanent, r.Final = errors.Is(r.Err, syscall.ECONNREFUSED), permanent(r.Err), errors.Is(r.Err, ErrRefused)
	}
	l.mu.Lock()
	l.machine.Replied(l.now(), a.Token, r)
	l.mu.Unlock()
	give(l.changed)
	if _, ok := a.Request.(control.Introduce); r.Err == nil || ok || l.ctx.Err() != nil {
		return
	}
	if _, changed := l.causes.Changed(a.Address, r.Err); changed {
		l.config.Logger.Info("request is retried", "group", l.config.Group, "member", a.Address, "cause", r.Err)
	}
}

// requested answers a request to this process.
func (l *life) requested(r control.Request) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer give(l.changed)
	return l.machine.Requested(l.now(), r)
}

// moved says that the seat has installed a view.
func (l *life) moved(v *membership.View, d membership.Decisions) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.machine.Moved(l.now(), v, d)
}

// address returns where the process of a member is.
func (l *life) address(m *membership.Member) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machine.Address(m)
}

// answerIntroduction introduces a member to a process that is none.
func (g *session) answerIntroduction(q *control.Question, answer func([]byte)) {
	i := control.Introduction{
		Contact: control.Contact{ID: g.self.Identity, Address: g.self.Address}, Role: control.Member,
		Marks: []uint64{control.Mark(g.self.Identity, g.self.Nonce)},
	}
	err := g.node.Do(func(protocol.Time) {
		if v := g.machine.View(); v.Number != q.View {
			i.View, i.Decisions = &v, g.machine.Decisions()
		}
	})
	if err != nil || g.removal.Load() != nil || g.Err() != nil {
		answer(refuse(errNotAMember))
		return
	}
	answer(control.Accept(i.Encode(nil)))
}

// errGone is why a seat suspects a member whose process has introduced itself.
var errGone = errors.New("its process has not its vote any more")

// errNotAMember is the refusal of a process whose membership has ended.
var errNotAMember = errors.New("this process is no longer a member")
