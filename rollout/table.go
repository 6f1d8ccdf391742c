package rollout

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/services/rollouts"
	"github.com/pleach-go/pleach/protocol"
)

// Table is the rollouts of a group. It is a machine for package replicated, whose methods Apply,
// Snapshot and Restore are for that package alone.
type Table struct {
	changed notify.Notifier

	mu    sync.Mutex // guards the rest
	state *rollouts.Table
}

// NewTable returns a table without rollouts.
func NewTable() *Table { return &Table{state: rollouts.New()} }

// use calls f with the state.
func (t *Table) use(f func(state *rollouts.Table)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.state)
}

// Apply applies a command. It implements [replicated.Machine].
func (t *Table) Apply(command []byte) []byte {
	var v rollouts.Verdict
	var changed bool
	t.use(func(state *rollouts.Table) { v, changed = state.Apply(command) })
	if changed {
		t.changed.Notify()
	}
	return []byte{byte(v)}
}

// Snapshot writes the state. It implements [replicated.Machine].
func (t *Table) Snapshot(w io.Writer) (err error) {
	t.use(func(state *rollouts.Table) { err = state.Snapshot(w) })
	return err
}

// Restore replaces the state. It implements [replicated.Machine].
func (t *Table) Restore(r io.Reader) (err error) {
	t.use(func(state *rollouts.Table) { err = state.Restore(r) })
	t.changed.Notify()
	return err
}

// statuses returns the rollouts, oldest first.
func (t *Table) statuses() (all []Status) {
	t.use(func(state *rollouts.Table) {
		for _, r := range state.Rollouts() {
			all = append(all, statusOf(r))
		}
	})
	return all
}

// status returns the rollout of an ID, as this process knows it.
func (t *Table) status(id string) (s Status, err error) {
	err = fmt.Errorf("%w: %q", ErrUnknown, id)
	t.use(func(state *rollouts.Table) {
		for _, r := range state.Rollouts() {
			if r.ID == id {
				s, err = statusOf(r), nil
			}
		}
	})
	return s, err
}

// Phase is where a rollout is.
type Phase string

// The phases of a rollout. Done, Stopped and Reverted are its ends.
const (
	Applying  Phase = "applying"  // the members of the wave apply the payload
	Holding   Phase = "holding"   // the payload runs for Spec.Hold
	Asking    Phase = "asking"    // the gates of all members that have the payload are asked
	Reverting Phase = "reverting" // all members that may have the payload revert it
	Done      Phase = "done"      // all waves have passed
	Stopped   Phase = "stopped"   // no other member gets the payload
	Reverted  Phase = "reverted"  // all members of the group that had the payload were asked to revert it
)

// Ended reports whether the rollout has ended.
func (p Phase) Ended() bool { return rollouts.Phase(p).Ended() }

// Status is a rollout as the group sees it.
type Status struct {
	ID     string
	Name   string
	Gate   string
	Phase  Phase
	Paused bool
	// Wave is the number of the wave that was released last, of Waves.
	Wave, Waves int
	// Reason says why the rollout has paused, stopped or reverted.
	Reason  string
	Hold    time.Duration
	Members []MemberStatus // by wave
}

// MemberStatus is a member in a rollout.
type MemberStatus struct {
	ID            string
	FailureDomain string
	Wave          int
	// State is waiting, released, taken (it applies the payload), applied, passed, failed, lost (it
	// died, or was removed from the group), skipped, reverting, reverted or not reverted.
	State string
	// Has says that the member has begun to apply the payload. It may have reverted it since.
	Has    bool
	Reason string // of a failure
}

// statusOf returns the status of a rollout.
func statusOf(r *rollouts.Rollout) Status {
	s := Status{
		ID: r.ID, Name: r.Name, Gate: r.Gate, Phase: Phase(r.Phase), Paused: r.Paused, Wave: r.Wave, Waves: r.Last,
		Reason: r.Reason, Hold: time.Duration(r.Hold),
	}
	for _, m := range r.Members {
		s.Members = append(s.Members, MemberStatus{
			ID: m.ID, FailureDomain: m.Domain, Wave: m.Wave, State: string(m.State), Has: m.Has != rollouts.Nothing,
			Reason: m.Reason,
		})
	}
	slices.SortStableFunc(s.Members, func(a, b MemberStatus) int { return a.Wave - b.Wave })
	return s
}

// specOf returns a spec for the table.
func specOf(id string, s *Spec) (*rollouts.Spec, error) {
	waves, timeout := s.Waves, s.Timeout
	if waves == "" {
		waves = defaultWaves
	}
	if timeout == 0 {
		timeout = defaultTimeout
	}
	sizes, err := rollouts.ParseWaves(waves)
	return &rollouts.Spec{
		ID: id, Name: s.Name, Payload: s.Payload, Revert: s.Revert, Gate: s.Gate, Waves: sizes, ByDomain: s.ByDomain,
		Hold: protocol.Time(s.Hold), Timeout: protocol.Time(timeout), Deaths: s.StopOnDeath,
		PauseOnFailure: s.PauseOnFailure,
	}, err
}
