package rollout

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/services/rollouts"
	"github.com/pleach-go/pleach/replicated"
)

// Errors of this package.
var (
	// ErrUnknown is returned for an ID that the group does not know, or has forgotten: it keeps 16
	// rollouts.
	ErrUnknown = errors.New("rollout: there is no such rollout")
	// ErrLate is returned if the rollout has ended, or is in another phase: Resume of one that is
	// not paused, Pause of one that is.
	ErrLate = errors.New("rollout: it is not in a phase in which that can be done")
	// ErrFull is returned by Start if 16 rollouts have not ended.
	ErrFull = errors.New("rollout: too many rollouts have not ended")
	// ErrNoRevert is returned by Revert if the rollout has no Spec.Revert.
	ErrNoRevert = errors.New("rollout: it has nothing to revert with")
	// ErrSpec is returned by Start if the spec is wrong.
	ErrSpec = errors.New("rollout: the spec is wrong")
)

const (
	defaultWaves   = "1,10%,50%,100%"
	defaultTimeout = time.Minute
)

// MaxPayload is the length of a payload and its revert together, in bytes. They must fit into a
// command of the group, too: see [replicated.Replica.Propose].
const MaxPayload = 1 << 20

// Config configures [New].
type Config struct {
	// Replica is this process in the group, and Machine the name that Table has in its
	// [replicated.Config]. All three are required.
	Replica *replicated.Replica
	Machine string
	Table   *Table
	// Takes reports whether a member takes part. It is the same function in all processes. If nil, all
	// members do.
	Takes func(pleach.Member) bool
	// Apply applies a payload in this process. An error fails the rollout. It is required.
	Apply func(ctx context.Context, r Release) error
	// Gate returns an error if this process is not well with the payload. If nil, all gates pass.
	Gate func(ctx context.Context, r Release) error
	// Revert undoes what Apply has done, or a part of it if this process died meanwhile. It may be
	// called again. If nil, the process reports that it cannot revert.
	Revert func(ctx context.Context, r Release) error
}

// Release is what this process has to do for a rollout.
type Release struct {
	ID   string // of the rollout
	Name string
	Gate string // Spec.Gate
	Data []byte // Spec.Payload for Apply and Gate, Spec.Revert for Revert; it must not be changed
}

// Spec is what is rolled out, and how.
type Spec struct {
	// Name is for people.
	Name string
	// Payload is what members apply, and Revert what they undo it with. If Revert is empty, a rollout
	// that fails stops, and its members keep the payload. Together they have MaxPayload bytes at most.
	Payload, Revert []byte
	// Gate is for Config.Gate, such as the name of a check.
	Gate string
	// Waves are how many members have the payload after each wave, as numbers or percentages of the
	// group, with 100% as the last. If empty, 1,10%,50%,100%. Waves take members of all failure
	// domains in turn.
	Waves string
	// ByDomain has Waves count failure domains: a wave has whole domains.
	ByDomain bool
	// Hold is how long a wave runs before the gates are asked.
	Hold time.Duration
	// Timeout is how long the members have to apply the payload of a wave, to answer for their gates,
	// and to revert. A member that does not is a failure. If zero, 1 min.
	Timeout time.Duration
	// StopOnDeath has the rollout fail if any member that was released dies or is removed from the
	// group. If not set, it fails if that happens to most members of a wave.
	StopOnDeath bool
	// PauseOnFailure has a rollout that fails pause, for an operator to decide.
	PauseOnFailure bool
}

// Rollouts are the rollouts of a group, for one process. Its methods are safe for concurrent use.
type Rollouts struct {
	config  Config
	group   *pleach.Group
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	views   notify.Notifier // notifies of each view
	began   time.Time

	mu      sync.Mutex
	working map[string]bool // rollouts that a goroutine works for
}

// New returns the rollouts of a group, and has this process take part in them until the membership
// ends, or Close is called. All members of the group call New as soon as they are members: one that does
// not report fails a rollout.
func New(c Config) (*Rollouts, error) {
	for _, check := range []struct {
		field string
		wrong bool
	}{{"Replica", c.Replica == nil}, {"Machine", c.Machine == ""}, {"Table", c.Table == nil}, {"Apply", c.Apply == nil}} {
		if check.wrong {
			return nil, &pleach.ConfigError{Field: check.field, Reason: "is missing"}
		}
	}
	if c.Replica.Machine(c.Machine) != replicated.Machine(c.Table) {
		return nil, &pleach.ConfigError{
			Field:  "Machine",
			Reason: fmt.Sprintf("is %q: the replica has no such machine, or it is not Table", c.Machine),
		}
	}
	r := &Rollouts{config: c, group: c.Replica.Group(), began: time.Now(), working: make(map[string]bool)}
	r.life, r.end = context.WithCancel(context.Background())
	r.running.Go(func() {
		for range r.group.Views(r.life) {
			r.views.Notify()
		}
	})
	r.running.Go(r.follow)
	r.running.Go(r.keepTime)
	return r, nil
}

// Close ends this process's part in rollouts, and waits until the functions of its Config have
// returned: their contexts end. The other members count it as one that does not report.
func (r *Rollouts) Close() {
	r.end()
	r.running.Wait()
}

// Start begins a rollout to the members of the present view, and returns its ID.
func (r *Rollouts) Start(ctx context.Context, s Spec) (id string, err error) {
	id = strings.ToLower(rand.Text()[:8])
	spec, err := specOf(id, &s)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return id, r.withView(ctx, rollouts.Command{Op: rollouts.Start, Spec: spec})
}

// Pause has no other member begin to apply the payload, until Resume.
func (r *Rollouts) Pause(ctx context.Context, id string) error {
	return r.do(ctx, rollouts.Command{Op: rollouts.Pause, ID: id})
}

// Resume continues a rollout that has paused. The gates are asked again; members that died, or could
// not apply the payload, count no longer.
func (r *Rollouts) Resume(ctx context.Context, id string) error {
	return r.do(ctx, rollouts.Command{Op: rollouts.Resume, ID: id})
}

// Stop ends a rollout. Members that have the payload keep it.
func (r *Rollouts) Stop(ctx context.Context, id string) error {
	return r.do(ctx, rollouts.Command{Op: rollouts.Stop, ID: id})
}

// Revert ends a rollout, or takes one that has ended, and has all members that may have the payload
// revert it. A member that is not there does so when it is back, as long as the group keeps the rollout.
func (r *Rollouts) Revert(ctx context.Context, id string) error {
	return r.withView(ctx, rollouts.Command{Op: rollouts.Undo, ID: id})
}

// List returns the rollouts that the group keeps, oldest first. It is linearizable.
func (r *Rollouts) List(ctx context.Context) (all []Status, err error) {
	err = r.config.Replica.Read(ctx, func() { all = r.config.Table.statuses() })
	return all, err
}

// Status returns a rollout. It is linearizable.
func (r *Rollouts) Status(ctx context.Context, id string) (Status, error) {
	if err := r.config.Replica.Read(ctx, func() {}); err != nil {
		return Status{}, err
	}
	return r.config.Table.status(id)
}

// Wait waits until a rollout has ended or paused.
func (r *Rollouts) Wait(ctx context.Context, id string) (Status, error) {
	s, err := r.Status(ctx, id)
	for err == nil && !s.Phase.Ended() && !s.Paused {
		changed := r.config.Table.changed.Wait()
		s, err = r.config.Table.status(id)
		if err != nil || s.Phase.Ended() || s.Paused {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s, ctx.Err()
		case <-r.config.Replica.Done():
			return s, r.config.Replica.Err()
		}
	}
	return s, err
}

// withView proposes a command for the present view.
func (r *Rollouts) withView(ctx context.Context, c rollouts.Command) error {
	for {
		changed := r.views.Wait()
		v := r.view()
		c.View = &v
		verdict, err := r.propose(ctx, &c)
		if err != nil || verdict != rollouts.Old {
			return errors.Join(err, verdictError(c.Op, verdict))
		}
		select { // this process learns of a view later than others
		case <-changed:
		case <-time.After(viewPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// viewPause is how often a process looks for a view that others have.
const viewPause = 100 * time.Millisecond

func (r *Rollouts) do(ctx context.Context, c rollouts.Command) error {
	v, err := r.propose(ctx, &c)
	return errors.Join(err, verdictError(c.Op, v))
}

// verdictError returns the error of a verdict.
func verdictError(op rollouts.Op, v rollouts.Verdict) error {
	switch v {
	case rollouts.Late:
		return ErrLate
	case rollouts.Unknown:
		return ErrUnknown
	case rollouts.Full:
		return ErrFull
	case rollouts.Wrong:
		if op == rollouts.Undo {
			return ErrNoRevert
		}
		return fmt.Errorf("%w: a payload and its revert have %d bytes at most, names 255, and times are not negative",
			ErrSpec, MaxPayload)
	default:
		return nil
	}
}

func (r *Rollouts) propose(ctx context.Context, c *rollouts.Command) (rollouts.Verdict, error) {
	b, err := c.Encode()
	if err != nil {
		return 0, err
	}
	result, err := r.config.Replica.Propose(ctx, r.config.Machine, b)
	if err != nil || len(result) == 0 {
		return 0, err
	}
	return rollouts.Verdict(result[0]), nil
}

// view returns the present view for the table.
func (r *Rollouts) view() rollouts.View {
	v := r.group.View()
	view := rollouts.View{Number: v.Number}
	for _, m := range v.Members() {
		if r.config.Takes != nil && !r.config.Takes(m) {
			continue
		}
		view.Members = append(view.Members, rollouts.Process{ID: m.ID, Incarnation: m.Incarnation})
		view.Domains = append(view.Domains, m.FailureDomain)
	}
	return view
}
