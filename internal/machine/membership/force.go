package membership

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Reasons to refuse to force a view.
var (
	// ErrHasQuorum: enough members are reachable to decide a view without force.
	ErrHasQuorum = errors.New("membership: the group has its quorum")
	// ErrForce is returned by ForceView if the given members cannot decide the next view.
	ErrForce = errors.New("membership: these members cannot decide the next view alone")
)

// ForceView lets some members of the view decide the next one without a quorum, on
// behalf of an operator who knows that the others are dead. If they are not, two groups
// result: this is the one way to give up agreement. The members, of which this one is
// one, have to be reachable, and all of them must accept the next view. It holds until
// there is one.
func (m *Machine) ForceView(now protocol.Time, ranks []protocol.Rank) error {
	m.now = now
	if _, _, ok := m.Quorum(); ok || m.done != nil {
		return fmt.Errorf("%w, or is over at rank %d, in view %d", ErrHasQuorum, m.config.Self.Rank, m.view.Number)
	}
	forced := newSet(m.view.Members.Len())
	for _, r := range ranks {
		i, ok := m.view.index(r)
		if !ok || slices.Contains(m.Unreachable(), r) {
			return fmt.Errorf("%w: rank %d is not in view %d, or cannot be reached by rank %d", ErrForce, r, m.view.Number,
				m.config.Self.Rank)
		}
		forced.add(i)
	}
	if m.electorate.among(forced) == 0 {
		return fmt.Errorf("%w: all of them are observers in view %d", ErrForce, m.view.Number)
	}
	if !forced.has(m.self) {
		return fmt.Errorf("%w: rank %d, which is asked, is not one of them", ErrForce, m.config.Self.Rank)
	}
	m.acceptor.forced, m.suspicions.marked = forced, nil
	return nil
}
