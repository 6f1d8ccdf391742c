package membership

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// State is how a member stands to its group.
type State uint8

// The states of a member.
const (
	// Active: a member of a view that a majority may go on from.
	Active State = iota
	// NoQuorum: too few others are reachable to go on. It may pass.
	NoQuorum
	// Evicted: the others have gone on without this member. It may join anew,
	// as another incarnation.
	Evicted
	// Left: as it wished.
	Left
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Active:
		return "active"
	case NoQuorum:
		return "no quorum"
	case Evicted:
		return "evicted"
	case Left:
		return "left"
	default:
		return "unknown state"
	}
}

// ErrLeft is why a member that has left does nothing more.
var ErrLeft = errors.New("membership: left the group")

// QuorumError says that too few members are reachable.
type QuorumError struct {
	View              uint64
	Reachable, Needed int
}

func (e *QuorumError) Error() string {
	return fmt.Sprintf("membership: no quorum: %d members of view %d are reachable, %d are needed", e.Reachable, e.View, e.Needed)
}

// EvictedError says that the others have gone on.
type EvictedError struct {
	// Rank was this member's; View is the last it was in, and By the first
	// known without it.
	Rank     protocol.Rank
	View, By uint64
}

func (e *EvictedError) Error() string {
	return fmt.Sprintf("membership: rank %d of view %d is not in view %d: join again as a new incarnation", e.Rank, e.View, e.By)
}

// State returns how the member stands, and if not Active an error that says why.
func (m *Machine) State() (State, error) {
	if m.done != nil {
		if errors.Is(m.done, ErrLeft) {
			return Left, m.done
		}
		return Evicted, m.done
	}
	if reachable := m.survivors(m.unreachable()); !m.isQuorum(reachable) {
		needed := m.view.Needed()
		if !reachable.has(0) {
			needed = len(m.view.Members)/2 + 1 // half is enough only with the lowest rank
		}
		return NoQuorum, &QuorumError{View: m.view.Number, Reachable: reachable.count(), Needed: needed}
	}
	return Active, nil
}

// unreachable is who is suspected, and who is silent whether or not that is excused.
func (m *Machine) unreachable() set {
	s := m.suspected(m.now)
	if silent := m.acceptor.silence.members; silent != nil {
		s.union(silent)
	}
	return s
}

// enough reports whether some members may decide the next view.
func (m *Machine) isQuorum(s set) bool {
	switch {
	case m.config.isQuorum != nil:
		return m.config.isQuorum(&m.view, s)
	case m.config.NoQuorum:
		return s.count() > 0
	default:
		return m.view.majority(s)
	}
}
