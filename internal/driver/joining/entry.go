// Package entry drives package lifecycle: it carries out what the machine of a process
// decides, from the start of the process until it is a member.
package joining

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/base/logsuppress"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/driver/arbitration"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/driver/datadir"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// logInterval is how often a process logs what it waits for.
const logInterval = 5 * time.Second

// Config configures a process that is not a member yet.
type Config struct {
	lifecycle.Config // Place and Former are those of the directory
	Client           *client.Client
	Listener         net.Listener
	DataDir          *datadir.Dir // nil: nothing is saved
	Heartbeat        heartbeat.Config
	Grant            arbitration.Grant // nil: the group has no arbiter
	SharedBytes      int               // shared with members on the same host, while it votes
	// Verify returns an error if the other side of a connection must not be the member of
	// the view that it says it is.
	Verify func(*membership.View, tcp.Claim) error
}

// Place is the place of a process that has become a member.
type Place struct {
	lifecycle.Membership
	// Candidate is what the process listens as until it is a member. It may be nil.
	Candidate *tcp.Candidate
}

// entry drives the machine of a process that is not a member yet.
type entry struct {
	Config
	start   time.Time
	logged  time.Time
	changed chan struct{} // there may be something to do
	ctx     context.Context
	cancel  context.CancelFunc
	asking  sync.WaitGroup

	// What the process listens as: a restarted voter, or a candidate.
	voter     *voter
	candidate *tcp.Candidate
	lent      *lentListener // the socket, as it is lent to one of them

	mu      sync.Mutex
	machine *lifecycle.Machine
	causes  logsuppress.Causes
}

// Find finds the group of a process. The process holds the place that it has, joins
// members, or begins a group with others, until it is a member. If it does not become one,
// its listener is closed.
func Find(ctx context.Context, c Config) (*Place, error) {
	c.Durable = c.DataDir != nil
	if c.Durable {
		c.Starts = c.DataDir.Starts()
	}
	l := &entry{Config: c, start: time.Now(), changed: make(chan struct{}, 1), machine: lifecycle.New(c.Config)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	place, err := l.run(ctx)
	l.close()
	if err != nil && l.candidate != nil {
		err = errors.Join(err, l.candidate.Close())
	} else if err != nil {
		err = errors.Join(err, c.Listener.Close())
	}
	return place, err
}

// run carries out what the machine decides.
func (l *entry) run(ctx context.Context) (*Place, error) {
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
			if place, err := l.do(action); place != nil || err != nil {
				return place, err
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
			return nil, l.interrupted(ctx, waiting)
		}
		l.look()
	}
}

// interrupted says what the process has waited for in vain.
func (l *entry) interrupted(ctx context.Context, waiting error) error {
	switch {
	case l.voter != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), l.voter.waiting())
	case waiting != nil:
		return fmt.Errorf("%w; %w", ctx.Err(), waiting)
	}
	return ctx.Err()
}

// logWaiting logs what the process waits for, now and then.
func (l *entry) logWaiting(waiting error) {
	if waiting != nil && l.Expect > 0 && l.voter == nil && time.Since(l.logged) > logInterval {
		l.logged = time.Now()
		l.Client.Logger.Info("looking for the group, or for processes to begin it with", "group", l.Client.Group,
			"found", waiting)
	}
}

// look tells the machine what has become of the restarted voter.
func (l *entry) look() {
	if l.voter == nil {
		return
	}
	answer, over, refused := l.voter.outcome()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.machine.Refused(refused)
	switch {
	case answer != nil:
		l.machine.Admitted(l.now(), answer)
	case over:
		l.machine.Over(l.now())
	}
}

// do carries out an action. It returns the place if the process is a member.
func (l *entry) do(action lifecycle.Action) (_ *Place, err error) {
	switch a := action.(type) {
	case lifecycle.Ask:
		l.asking.Go(func() { l.ask(&a) })
	case lifecycle.Stand:
		err = l.stand()
	case lifecycle.Hold:
		l.rest()
		if err = l.DataDir.Begin(a.Place, a.Candidate.Nonce); err != nil {
			break
		}
		l.lent = lend(l.Listener)
		l.voter, err = newVoter(l, a.Place, &a.Candidate)
	case lifecycle.Suspect:
		l.report(detect.Report{Rank: a.Rank, Incarnation: a.Incarnation, Cause: errGone})
	case lifecycle.Trust:
		l.report(detect.Report{Rank: a.Rank, Incarnation: a.Incarnation, Alive: true})
	case lifecycle.Forget:
		l.Client.Logger.Info("the old place is over: too few of its view can come back", "group", l.Client.Group)
		err = l.DataDir.Save(nil, true)
	case lifecycle.Become:
		if l.candidate == nil {
			l.rest()
		} else {
			l.lent.keep()
		}
		l.Client.Logger.Info("group joined", "group", l.Client.Group, "view", a.View.Number, "begun", a.Began != nil)
		return &Place{a.Membership, l.candidate}, nil
	case lifecycle.Fail:
		err = a.Err
	}
	return nil, err
}

// report tells the restarted voter, if there is one, what has become of a member.
func (l *entry) report(r detect.Report) {
	if l.voter != nil {
		l.voter.report(r)
	}
}

// stand makes the process listen as a candidate.
func (l *entry) stand() (err error) {
	l.rest()
	l.lent = lend(l.Listener)
	l.candidate, err = tcp.NewCandidate(l.Client.Config(l.lent), func(from transport.Client, b []byte) []byte {
		r, err := l.Client.OpenRequest(nil, from, b)
		if err != nil {
			return client.Refuse(err)
		}
		return l.requested(r)
	})
	return err
}

// rest ends the restarted voter or the candidate. The listener stays open.
func (l *entry) rest() {
	switch {
	case l.voter != nil:
		l.voter.close()
	case l.candidate != nil:
		_ = l.candidate.Close()
	default:
		return
	}
	l.voter, l.candidate = nil, nil
	l.lent.giveBack()
}

// close ends what has not become part of a member.
func (l *entry) close() {
	l.cancel()
	if l.voter != nil {
		l.rest()
	} else if l.candidate != nil {
		l.lent.keep()
	}
	l.asking.Wait()
}

func (l *entry) now() protocol.Time { return protocol.Time(time.Since(l.start)) + 1 }

// ask sends a request.
func (l *entry) ask(a *lifecycle.Ask) {
	ctx, cancel := context.WithTimeout(l.ctx, time.Duration(a.Timeout))
	defer cancel()
	var r lifecycle.Reply
	var from []*x509.Certificate
	r.Body, from, r.Err = l.Client.AskKnown(ctx, a.Address, a.Request)
	if _, ok := a.Request.(control.Founding); r.Err == nil && !ok {
		r.Body, r.Err = l.Client.Open(r.Body)
	}
	if r.Err == nil {
		r.Err = l.Client.Believe(from, a.Request, r.Body)
	}
	if r.Err != nil {
		r.Gone, r.Permanent, r.Final = errors.Is(r.Err, syscall.ECONNREFUSED), client.Permanent(r.Err),
			errors.Is(r.Err, client.ErrRefused)
	}
	l.mu.Lock()
	l.machine.Replied(l.now(), a.Token, r)
	l.mu.Unlock()
	notify.Signal(l.changed)
	if _, ok := a.Request.(control.Introduce); r.Err == nil || ok || l.ctx.Err() != nil {
		return
	}
	if _, changed := l.causes.Changed(a.Address, r.Err); changed {
		l.Client.Logger.Info("request is retried", "group", l.Client.Group, "member", a.Address, "cause", r.Err)
	}
}

// requested answers a request to this process.
func (l *entry) requested(r control.Request) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer notify.Signal(l.changed)
	return l.machine.Requested(l.now(), r)
}

// moved says that the restarted voter has installed a view.
func (l *entry) moved(v *membership.View, d membership.Decisions) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.machine.Moved(l.now(), v, d)
}

// address returns where the process of a member is.
func (l *entry) address(m *membership.Member) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machine.Address(m)
}

// errGone is why a restarted voter suspects a member whose process has introduced itself.
var errGone = errors.New("its process has lost its vote")
