package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/agent/kv"
)

// ErrNotMember is returned while the agent is not a member of its group.
var ErrNotMember = errors.New("the agent is not a member of its group yet")

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

// statusOf is the status of an error.
func statusOf(err error) int {
	var status *statusError
	var long *http.MaxBytesError
	var topic *pleach.TopicError
	switch {
	case errors.As(err, &status):
		return status.status
	case keyStatus(err) != 0:
		return keyStatus(err)
	case lockStatus(err) != 0:
		return lockStatus(err)
	case errors.As(err, &topic):
		return http.StatusBadRequest
	case errors.As(err, &long):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, pleach.ErrGone):
		return http.StatusNotFound
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.Is(err, context.Canceled): // the client is gone
		return http.StatusServiceUnavailable
	case errors.Is(err, ErrNotMember), errors.Is(err, ErrNotInFleet), errors.Is(err, pleach.ErrNoQuorum), errors.Is(err, pleach.ErrEvicted),
		errors.Is(err, pleach.ErrTooSlow), errors.Is(err, pleach.ErrClosed), errors.Is(err, pleach.ErrLeft):
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
		s.log.Warn("request failed", "path", r.URL.Path, "error", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = encodeJSON(w, text)
}
