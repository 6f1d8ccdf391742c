package main

// #include "library.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/collective/engine"
)

// invalidError is about an argument that is wrong.
type invalidError struct{ text string }

func (e *invalidError) Error() string { return "pleach: " + e.text }

func invalid(format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...)} }

// callbackError calls a callback of the program, and returns its error: the text of pleach_reason, or the number
// that it returned.
func callbackError(name string, call func(reason *C.char) C.int) error {
	var reason [C.PLEACH_TEXT]C.char
	code := call(&reason[0])
	switch {
	case code == 0:
		return nil
	case reason[0] == 0:
		return fmt.Errorf("pleach_call.%s returned %d", name, code)
	}
	return errors.New(C.GoString(&reason[0]))
}

// setError writes an error for C, and returns its code. out may be nil.
func setError(out *C.pleach_error, err error) C.int {
	code, ranks := classify(err)
	if out == nil {
		return C.int(code)
	}
	out.code, out.ranks_count = C.int32_t(code), C.int32_t(len(ranks))
	for i := range min(len(ranks), C.PLEACH_RANKS) {
		out.ranks[i] = C.int32_t(ranks[i])
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&out.text[0])), C.PLEACH_TEXT)
	b[copy(b[:C.PLEACH_TEXT-1], text)] = 0
	return C.int(code)
}

// classify returns an error's code, and the ranks that it is about.
func classify(err error) (code uint32, ranks []int) {
	switch {
	case err == nil:
		return C.PLEACH_OK, nil
	case errors.Is(err, pleach.ErrEvicted):
		return C.PLEACH_EVICTED, nil
	case errors.Is(err, pleach.ErrNotAdmitted):
		return C.PLEACH_NOT_ADMITTED, nil
	case errors.Is(err, pleach.ErrJobEnded):
		return C.PLEACH_ENDED, nil
	case errors.Is(err, engine.ErrClosed), errors.Is(err, pleach.ErrClosed):
		return C.PLEACH_CLOSED, nil
	}
	if code, ranks := classifyType(err); code != C.PLEACH_OTHER {
		return code, ranks
	}
	switch {
	case errors.Is(err, context.Canceled):
		return C.PLEACH_CANCELED, nil
	case errors.Is(err, context.DeadlineExceeded):
		return C.PLEACH_TIMED_OUT, nil
	}
	return C.PLEACH_OTHER, nil
}

// classifyType knows errors by their types.
func classifyType(err error) (code uint32, ranks []int) {
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch e := e.(type) {
		case *invalidError:
			return C.PLEACH_INVALID, nil
		case *collective.FailedError:
			return C.PLEACH_FAILED, e.Ranks
		case *collective.RevokedError:
			return C.PLEACH_REVOKED, []int{e.By}
		case *collective.MismatchError:
			return C.PLEACH_MISMATCH, []int{e.Rank, e.Other}
		case *collective.DivergedError:
			return C.PLEACH_DIVERGED, []int{e.Owner}
		case *collective.HoldError:
			return C.PLEACH_HELD, []int{e.Holder}
		case *collective.AbortError:
			return C.PLEACH_ABORTED, []int{e.Rank}
		case *collective.ArgumentError:
			return C.PLEACH_INVALID, nil
		case *collective.OperatorError:
			return C.PLEACH_OPERATOR, []int{e.Rank}
		case *collective.RestoreError:
			return C.PLEACH_NOT_RESTORED, []int{e.Task}
		case *collective.TooManyDeadError:
			return C.PLEACH_TOO_MANY_DEAD, []int{e.Rank}
		case *pleach.QuorumError:
			return C.PLEACH_NO_QUORUM, e.Unreachable
		case *collective.TimeoutError:
			if errors.Is(e, context.Canceled) {
				return C.PLEACH_CANCELED, nil
			}
			for _, m := range e.Missing {
				ranks = append(ranks, m.Rank)
			}
			return C.PLEACH_TIMED_OUT, ranks
		}
	}
	return C.PLEACH_OTHER, nil
}
