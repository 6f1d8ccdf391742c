package collective

import (
	"errors"
	"fmt"
	"strings"
)

// ErrClosed: the world has been closed by this process.
var ErrClosed = errors.New("collective: world closed")

// errPast ends what is kept of a call that all have finished.
var errPast = errors.New("collective: everybody has finished this call")

// FailedError says that members have failed, and that the call, of the strength
// [Report], was not finished.
type FailedError struct {
	Ranks []int // who has failed
	View  uint64
	Call  uint64
	What  string // was called
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("collective: call %d, %s: ranks %v are not in view %d any more", e.Call, e.What, e.Ranks, e.View)
}

// RevokedError says that a member has revoked the world ([Place.Revoke]), and that
// the call was not finished, or not begun.
type RevokedError struct {
	By   int // the rank that has; one of them, if they are several
	View uint64
	Call uint64
	What string // was called
}

func (e *RevokedError) Error() string {
	return fmt.Sprintf("collective: call %d, %s, in view %d: rank %d has revoked the world", e.Call, e.What, e.View, e.By)
}

// MismatchError says that two processes have called different things at the same
// place of their programs.
type MismatchError struct {
	Call        uint64
	Rank, Other int
	// What and OtherWhat are what they have called.
	What, OtherWhat string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("collective: call %d does not match: rank %d called %s, rank %d called %s", e.Call, e.Rank, e.What, e.Other, e.OtherWhat)
}

// LateError says that a call was not over when its context ended, and who is
// holding it up.
type TimeoutError struct {
	Call uint64
	What string
	View uint64
	// Absent have not come to this call, as far as is known.
	Missing []Missing
	// Waiting are the ranks whose messages were waited for at the end.
	Waiting []int
	Err     error
}

// Absent is a member that has not come to a call.
type Missing struct {
	Rank int
	// Calls is how many it has begun, and Last the last of them. Silent says
	// that nothing has been heard of it at all.
	Calls  uint64
	Last   string
	Silent bool
}

func (a Missing) String() string {
	if a.Silent {
		return fmt.Sprintf("rank %d (silent)", a.Rank)
	}
	return fmt.Sprintf("rank %d (%d calls, the last %s)", a.Rank, a.Calls, a.Last)
}

func (e *TimeoutError) Error() string {
	var who strings.Builder
	for i, a := range e.Missing {
		if i > 0 {
			who.WriteString(", ")
		}
		who.WriteString(a.String())
	}
	if len(e.Missing) == 0 {
		who.WriteString("nobody")
	}
	return fmt.Sprintf("collective: call %d, %s, in view %d: not arrived: %s; waited for ranks %v: %v", e.Call, e.What, e.View, &who, e.Waiting, e.Err)
}

// Unwrap returns the cause.
func (e *TimeoutError) Unwrap() error { return e.Err }

// AbortError says that another process has given up a call.
type AbortError struct {
	Call   uint64
	What   string
	Rank   int
	Reason string
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("collective: call %d, %s, was given up by rank %d: %s", e.Call, e.What, e.Rank, e.Reason)
}

// RestoreError says that the input of a task could not be brought back.
type RestoreError struct {
	Task int
	Call uint64
	Err  error
}

func (e *RestoreError) Error() string {
	return fmt.Sprintf("collective: call %d: input of task %d, whose process has failed: %v", e.Call, e.Task, e.Err)
}

// Unwrap returns the cause.
func (e *RestoreError) Unwrap() error { return e.Err }

// ErrNoRestore: the call was given no Restore for its type of input.
var ErrNoRestore = errors.New("no Restore was given")

// lengthError says that an input has another length than it had.
type lengthError struct{ got, want int }

func (e *lengthError) Error() string {
	return fmt.Sprintf("it has %d elements, the others' %d", e.got, e.want)
}
