package detect

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// The reasons of a [Suspicion].
var (
	// ErrGone means that the host answers that no process is there.
	ErrGone = errors.New("its process is gone")
	// ErrSilent means that no answer comes. The peer may be cut off, or only slow.
	ErrSilent = errors.New("it is silent")
	// ErrReplaced means that a later process has the rank.
	ErrReplaced = errors.New("a later process has its place")
	// ErrReported means that an external source has reported the death.
	ErrReported = errors.New("it was reported dead")
)

// Suspicion is the cause of a report.
type Suspicion struct {
	Rank        protocol.Rank
	Incarnation uint64
	// Why is [ErrGone], [ErrSilent], [ErrReplaced] or [ErrReported].
	Why error
	// Err is the underlying error. It may be nil.
	Err error
}

func (s *Suspicion) Error() string {
	if s.Err == nil {
		return fmt.Sprintf("detect: rank %d (incarnation %d): %v", s.Rank, s.Incarnation, s.Why)
	}
	return fmt.Sprintf("detect: rank %d (incarnation %d): %v: %v", s.Rank, s.Incarnation, s.Why, s.Err)
}

// Unwrap returns Why, and Err if there is one.
func (s *Suspicion) Unwrap() []error {
	if s.Err == nil {
		return []error{s.Why}
	}
	return []error{s.Why, s.Err}
}
