package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/kv"
)

// ErrNotMember is returned while the agent is not a member of its group.
var ErrNotMember = errors.New("the agent is not a member of its group yet")

// ErrNotCurrent is returned while the agent is a member, and does not have all that its group keeps.
var ErrNotCurrent = errors.New("the agent is a member, and is not current yet")

// ErrNotInFleet is returned while the agent is not a member of its fleet.
var ErrNotInFleet = errors.New("the agent is not a member of its fleet yet")

// statusError is an error with a status of HTTP.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func badRequest(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// BadRequest makes an error the client's.
func BadRequest(err error) error { return &statusError{http.StatusBadRequest, err} }

// NoSpaceError is returned for a file for which there is no room on its way.
type NoSpaceError struct {
	Dir         string
	Free, Spare int64 // bytes that are free, and that have to stay so
}

func (e *NoSpaceError) Error() string {
	return fmt.Sprintf("no room for the file in %s: %d MiB are free, and %d MiB stay free for the agent", e.Dir,
		e.Free>>20, e.Spare>>20)
}

// statusOf is the status of an error.
func statusOf(err error) int {
	var status *statusError
	var long *http.MaxBytesError
	var topic *pleach.TopicError
	var unconfirmed *pleach.UnconfirmedError
	switch {
	case errors.As(err, &status):
		return status.status
	case keyStatus(err) != 0:
		return keyStatus(err)
	case lockStatus(err) != 0:
		return lockStatus(err)
	case shardStatus(err) != 0:
		return shardStatus(err)
	case rolloutStatus(err) != 0:
		return rolloutStatus(err)
	case errors.As(err, &topic), errors.Is(err, io.ErrUnexpectedEOF): // the body has ended early
		return http.StatusBadRequest
	case errors.As(err, new(*pleach.VersionError)):
		return http.StatusConflict
	case errors.As(err, new(*NoSpaceError)):
		return http.StatusInsufficientStorage
	case errors.As(err, &long):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, pleach.ErrGone):
		return http.StatusNotFound
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.Is(err, context.Canceled): // the client is gone
		return http.StatusServiceUnavailable
	case errors.Is(err, ErrNotMember), errors.Is(err, ErrNotInFleet), errors.Is(err, pleach.ErrNoQuorum),
		errors.Is(err, pleach.ErrEvicted),
		errors.Is(err, pleach.ErrTooSlow), errors.Is(err, pleach.ErrClosed), errors.Is(err, pleach.ErrLeft),
		errors.As(err, &unconfirmed):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// fail writes an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := statusOf(err), Error{Error: err.Error()}
	var conflict *kv.ConflictError
	if errors.As(err, &conflict) {
		text.Version = conflict.Version
	}
	var unstable *pleach.UnstableError
	if errors.As(err, &unstable) {
		text.Unanswered = unstable.Unanswered
	}
	if status == http.StatusInternalServerError {
		if repeated, changed := s.failures.Changed(r.Pattern, err); changed {
			s.log.Warn("request failed", "path", r.URL.Path, "error", err, "repeated", repeated)
		}
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = encodeJSON(w, text)
}
