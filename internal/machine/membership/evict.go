package membership

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// A live member leaves the view against its will if an operator evicts it, or if its
// certificate is revoked. Both are suspicions that no detector withdraws, with a cause that
// the reports carry to the coordinator and the decision to all members. So they take the path
// of every other removal, and an evicted coordinator has no say in it.

// EvictVersion is the first protocol version of a group whose decisions tell of evictions.
const EvictVersion = wire.EvictVersion

// Reasons to refuse to evict a member.
var (
	// ErrEvictSelf: a member does not evict itself.
	ErrEvictSelf = errors.New("membership: another member has to be asked")
	// ErrEvictGone: the process is not in the view.
	ErrEvictGone = errors.New("membership: it is not in the view")
)

// Evict asks for a view without an incarnation of a member, until there is one. The cause is
// [OperatorEvicted] or [Revoked]. An operator's request is refused with a [QuorumError] if the
// reachable members cannot decide without that one, and ends when they cannot any more. A
// revoked member is excluded in any case: the others do not talk to it.
func (m *Machine) Evict(now protocol.Time, r protocol.Rank, incarnation uint64, cause Cause) error {
	m.now = now
	switch i, _ := m.view.index(r); {
	case r == m.config.Self.Rank:
		return fmt.Errorf("%w: it is rank %d", ErrEvictSelf, r)
	case m.done != nil || !m.view.Holds(r, incarnation):
		return fmt.Errorf("%w: incarnation %d of rank %d, view %d", ErrEvictGone, incarnation, r, m.view.Number)
	case cause == OperatorEvicted:
		rest := m.survivors(m.unreachable())
		rest.remove(i)
		if !m.mayDecide(rest) {
			return m.quorumError(rest)
		}
	}
	s := &m.suspicions
	at, known := slices.BinarySearchFunc(s.own, r, compareRank)
	switch x := (suspect{r, incarnation, cause}); {
	case !known:
		s.own = slices.Insert(s.own, at, x)
	case s.own[at].cause != Revoked:
		s.own[at] = x
	}
	s.marked = nil
	m.reporter.changed()
	return nil
}

// withdrawEvictions ends the operator's evictions without which there would be a quorum: the
// evicted members have to vote.
func (m *Machine) withdrawEvictions() {
	s := &m.suspicions
	ordered := func(x suspect) bool { return x.cause == OperatorEvicted }
	if !slices.ContainsFunc(s.own, ordered) || m.mayDecide(m.survivors(m.unreachable())) {
		return
	}
	s.own, s.marked = slices.DeleteFunc(s.own, ordered), nil
	m.reporter.withdrawn = true
	m.reporter.changed()
}

// told returns the cause of a suspicion as this group's protocol version can tell it.
func (m *Machine) told(c Cause) Cause {
	if m.view.Version < EvictVersion {
		return Suspected
	}
	return c
}

// removes reports whether a decision can have a cause as that of a removal.
func (c Cause) removes() bool { return c <= Forced || c.evicts() }

// evicts reports whether a cause is one of those that no detector withdraws.
func (c Cause) evicts() bool { return c == OperatorEvicted || c == Revoked }
