package detect

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Why a peer is suspected.
var (
	// ErrGone: its host answers that no process is there.
	ErrGone = errors.New("its process is gone")
	// ErrSilent: nothing answers. It may be cut off, or only slow.
	ErrSilent = errors.New("it is silent")
	// ErrReplaced: a later process has taken its place.
	ErrReplaced = errors.New("a later process has its place")
	// ErrReported: somebody outside says so.
	ErrReported = errors.New("it was reported dead")
)

// Suspicion is the cause of a report.
type Suspicion struct {
	Rank        protocol.Rank
	Incarnation uint64
	// Why is [ErrGone], [ErrSilent], [ErrReplaced] or [ErrReported].
	Why error
	// Err is what was seen. It may be nil.
	Err error
}

func (s *Suspicion) Error() string {
	if s.Err == nil {
		return fmt.Sprintf("detect: rank %d (incarnation %d): %v", s.Rank, s.Incarnation, s.Why)
	}
	return fmt.Sprintf("detect: rank %d (incarnation %d): %v: %v", s.Rank, s.Incarnation, s.Why, s.Err)
}

// Unwrap returns why, and what was seen.
func (s *Suspicion) Unwrap() []error {
	if s.Err == nil {
		return []error{s.Why}
	}
	return []error{s.Why, s.Err}
}
