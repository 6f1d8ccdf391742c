package collective

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// ErrNoRestore is wrapped by a [*RestoreError] when the call has no [Restore] option for
// the type of its input.
var ErrNoRestore = errors.New("no Restore was given")

// ArgumentError is returned by a call that was given an argument or an option that does not fit it. The call has not
// begun.
type ArgumentError struct{ Text string }

func (e *ArgumentError) Error() string { return "collective: " + e.Text }

func wrongArgument(format string, args ...any) error {
	return &ArgumentError{fmt.Sprintf(format, args...)}
}

// FailedError is returned by a call with [Report] when members have failed. The call has
// no result, except [Agree].
type FailedError struct {
	Ranks []int // that have failed
	View  uint64
	Call  uint64
	What  string // the call
}

func (e *FailedError) Error() string { return (*engine.FailedError)(e).Error() }

// RevokedError is returned by a call when a member has revoked the communicator
// ([Comm.Revoke]).
type RevokedError struct {
	By   int // the rank that has revoked it; one of them, if there are several
	View uint64
	Call uint64
	What string // the call
}

func (e *RevokedError) Error() string { return (*engine.RevokedError)(e).Error() }

// MismatchError is returned by a call, on all processes, when two processes have made
// different calls at the same place of the common order. A process whose call had returned
// before the others noticed, such as the root of a Broadcast, gets it from its next call.
type MismatchError struct {
	Call        uint64
	Rank, Other int
	// What and OtherWhat are the calls of Rank and Other.
	What, OtherWhat string
}

func (e *MismatchError) Error() string { return (*engine.MismatchError)(e).Error() }

// DivergedError is returned by every call, on all processes, once a task that was taken over
// has sent another message than before: a [Restore] did not return what the task had passed
// to that call, so that results are no longer the same everywhere. The job cannot be
// continued. Only messages of numbers are compared, and long ones by samples unless the call
// is held ([Comm.Hold]).
type DivergedError struct {
	Call  uint64 // in which the messages differ
	What  string // the call
	View  uint64
	Task  int // whose messages differ
	Owner int // the rank that has taken the task over, and called Restore
	Rank  int // that has got both messages
}

func (e *DivergedError) Error() string { return (*engine.DivergedError)(e).Error() }

// HoldError is returned by a call, on all processes that take part in it, when the calls
// that a process holds ([Comm.Hold]) reach the limits of the log (pleach.Job.LogCalls and
// LogBytes). The call has not begun on Rank. Calls fail until the holder has released.
type HoldError struct {
	Call   uint64
	What   string // the call
	View   uint64
	Rank   int    // whose log is full
	Holder int    // the rank that holds; one of them, if there are several
	First  uint64 // the first call that is held
	Bytes  int    // logged since then
	// MaxCalls and MaxBytes are the limits.
	MaxCalls, MaxBytes int
}

func (e *HoldError) Error() string { return (*engine.HoldError)(e).Error() }

// AbortError is returned by a call that has ended with an error on another process.
type AbortError struct {
	Call   uint64
	What   string // the call
	Rank   int    // where it has ended
	Reason string // the text of the error there
}

func (e *AbortError) Error() string { return (*engine.AbortError)(e).Error() }

// TimeoutError is returned by a call whose context has ended. It names the processes that
// hold the call up.
type TimeoutError struct {
	Call uint64
	What string // the call
	View uint64
	// Missing are the members that have not made this call, as far as this process
	// knows.
	Missing []Missing
	// Waiting are the ranks whose messages the call was waiting for.
	Waiting []int
	Err     error // of the context
}

func (e *TimeoutError) Error() string {
	t := engine.TimeoutError{Call: e.Call, What: e.What, View: e.View, Waiting: e.Waiting, Err: e.Err}
	for _, m := range e.Missing {
		t.Missing = append(t.Missing, engine.Missing(m))
	}
	return t.Error()
}

// Unwrap returns the context's error.
func (e *TimeoutError) Unwrap() error { return e.Err }

// Missing is a member that has not made a call.
type Missing struct {
	Rank   int
	Calls  uint64 // that it has begun
	Last   string // the last of them
	Silent bool   // no message has arrived from it at all
}

func (m Missing) String() string { return engine.Missing(m).String() }

// RestoreError is returned by a call on the process that owns a failed process's task, when
// the task's input cannot be restored. The other processes get an [*AbortError].
type RestoreError struct {
	Task int
	Call uint64
	Err  error // returned by [Restore], or why its result does not fit
}

func (e *RestoreError) Error() string {
	return fmt.Sprintf("collective: call %d: input of task %d, whose process has failed: %v", e.Call, e.Task, e.Err)
}

// Unwrap returns the cause.
func (e *RestoreError) Unwrap() error { return e.Err }

// OperatorError is returned by a call on the process whose operator has failed
// ([Operator.Try]). The other processes get an [*AbortError].
type OperatorError struct {
	Call     uint64
	Rank     int    // of this process
	Operator string // its name
	Err      error  // returned by the operator
}

func (e *OperatorError) Error() string {
	return fmt.Sprintf("collective: call %d: operator %q failed on rank %d: %v", e.Call, e.Operator, e.Rank, e.Err)
}

// Unwrap returns the cause.
func (e *OperatorError) Unwrap() error { return e.Err }

// TooManyDeadError is returned by a call with [Corrected] when more processes have died
// than it tolerates, or the root has died.
type TooManyDeadError struct {
	Call uint64
	Rank int // of the process that noticed
	F    int // how many may die
}

func (e *TooManyDeadError) Error() string {
	return fmt.Sprintf("collective: call %d: more than %d processes have died, or the root, says rank %d", e.Call,
		e.F, e.Rank)
}

// lengthError is the cause of a [*RestoreError].
type lengthError struct{ got, want int }

func (e *lengthError) Error() string {
	return fmt.Sprintf("it has %d elements, the others' %d", e.got, e.want)
}

// publicError turns the engine's errors into those of this package. Every call returns
// through it. In a derived communicator it says which ranks are meant.
func (c Comm) publicError(err error) error {
	public := publicError(err)
	if members := core(c).WorldRanks(); public != nil && members != nil {
		return fmt.Errorf("%w (ranks count the members of a communicator: %s)", public, worldRanks(members))
	}
	return public
}

// worldRanks tells the ranks of the world that a communicator has.
func worldRanks(members []int) string {
	const most = 16
	parts := make([]string, 0, most)
	for rank, world := range members[:min(most, len(members))] {
		parts = append(parts, fmt.Sprintf("%d is rank %d of the world", rank, world))
	}
	if len(members) > most {
		parts = append(parts, fmt.Sprintf("and %d more", len(members)-most))
	}
	return strings.Join(parts, ", ")
}

// publicError turns the engine's errors into those of this package. All others stay as they
// are.
func publicError(err error) error {
	switch e := err.(type) {
	case *engine.FailedError:
		return (*FailedError)(e)
	case *engine.RevokedError:
		return (*RevokedError)(e)
	case *engine.MismatchError:
		return (*MismatchError)(e)
	case *engine.DivergedError:
		return (*DivergedError)(e)
	case *engine.HoldError:
		return (*HoldError)(e)
	case *engine.AbortError:
		return (*AbortError)(e)
	case *engine.TimeoutError:
		t := &TimeoutError{Call: e.Call, What: e.What, View: e.View, Waiting: e.Waiting, Err: e.Err}
		for _, m := range e.Missing {
			t.Missing = append(t.Missing, Missing(m))
		}
		return t
	}
	return err
}
