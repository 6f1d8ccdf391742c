package engine

import (
	"errors"
	"fmt"
	"strings"
)

// Package collective has public types with the same fields as the errors below, converts
// these into those where a call returns, and documents them. So a program never meets a
// type of this package.

// ErrClosed is the cause of the errors of a closed engine.
var ErrClosed = errors.New("collective: world closed")

// errFinishedByAll ends the background work of a call that all processes have finished.
var errFinishedByAll = errors.New("collective: every process has finished this call")

// FailedError ends a call in mode Report when members have failed.
type FailedError struct {
	Ranks []int
	View  uint64
	Call  uint64
	What  string
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("collective: call %d, %s: ranks %v are not in view %d any more", e.Call, e.What, e.Ranks, e.View)
}

// RevokedError ends a call of a revoked communicator.
type RevokedError struct {
	By   int
	View uint64
	Call uint64
	What string
}

func (e *RevokedError) Error() string {
	return fmt.Sprintf("collective: call %d, %s, in view %d: rank %d has revoked the world", e.Call, e.What, e.View, e.By)
}

// MismatchError ends a call that two processes have called differently.
type MismatchError struct {
	Call            uint64
	Rank, Other     int
	What, OtherWhat string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("collective: call %d does not match: rank %d called %s, rank %d called %s", e.Call, e.Rank, e.What,
		e.Other, e.OtherWhat)
}

// DivergedError ends all calls when a task was restored with another input than it had.
type DivergedError struct {
	Call        uint64
	What        string
	View        uint64
	Task, Owner int
	Rank        int
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("collective: call %d, %s, in view %d: task %d, which rank %d has taken over, sent rank %d another message than before: its Restore did not return the input that the task had in this call",
		e.Call, e.What, e.View, e.Task, e.Owner, e.Rank)
}

// HoldError ends a call that cannot begin because calls before it are held.
type HoldError struct {
	Call               uint64
	What               string
	View               uint64
	Rank, Holder       int
	First              uint64
	Bytes              int
	MaxCalls, MaxBytes int
}

func (e *HoldError) Error() string {
	return fmt.Sprintf("collective: call %d, %s, in view %d: rank %d holds all calls since %d, for which rank %d has logged %d bytes; the limits are %d calls and %d bytes",
		e.Call, e.What, e.View, e.Holder, e.First, e.Rank, e.Bytes, e.MaxCalls, e.MaxBytes)
}

// AbortError ends a call that has failed on another process.
type AbortError struct {
	Call   uint64
	What   string
	Rank   int
	Reason string
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("collective: call %d, %s, was given up by rank %d: %s", e.Call, e.What, e.Rank, e.Reason)
}

// TimeoutError ends a call whose context has ended.
type TimeoutError struct {
	Call    uint64
	What    string
	View    uint64
	Missing []Missing
	Waiting []int
	Err     error
}

func (e *TimeoutError) Error() string {
	missing, waiting := make([]string, len(e.Missing)), make([]string, len(e.Waiting))
	for i, m := range e.Missing {
		missing[i] = m.String()
	}
	for i, r := range e.Waiting {
		waiting[i] = fmt.Sprintf("rank %d", r)
	}
	text := fmt.Sprintf("collective: call %d, %s, in view %d", e.Call, e.What, e.View)
	if len(missing) > 0 {
		text += "; not called yet by " + strings.Join(missing, ", ")
	}
	if len(waiting) > 0 {
		text += "; no message yet from " + strings.Join(waiting, ", ")
	}
	return text + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *TimeoutError) Unwrap() error { return e.Err }

// Missing is a member that has not come to a call.
type Missing struct {
	Rank   int
	Calls  uint64
	Last   string
	Silent bool
}

func (m Missing) String() string {
	switch {
	case m.Silent:
		return fmt.Sprintf("rank %d (never heard from)", m.Rank)
	case m.Calls == 0:
		return fmt.Sprintf("rank %d (it has made no call)", m.Rank)
	}
	return fmt.Sprintf("rank %d (its call %d was the last, %s)", m.Rank, m.Calls-1, m.Last)
}
