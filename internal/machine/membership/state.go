package membership

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// State is the state of a member in its group.
type State uint8

// The states of a member.
const (
	// Active: the member is in a view, and reaches a quorum of it.
	Active State = iota
	// NoQuorum: too few other members are reachable to decide a view. It may pass.
	NoQuorum
	// Evicted: the group has decided a view without this member. The process may
	// join again, unless another one has replaced it.
	Evicted
	// Left: the member has left on its own request.
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

// ErrLeft is the error of a member in state [Left].
var ErrLeft = errors.New("membership: left the group")

// QuorumError is the error of a member in state [NoQuorum]: too few members are
// reachable.
type QuorumError struct {
	View                       uint64
	Reachable, Members, Needed int // of the voters
	Observers                  int // that the view has besides
	// Arbiter is what the arbiter has said about those that are reachable, if they are half of the
	// voters.
	Arbiter Verdict
}

func (e *QuorumError) Error() string {
	members := "members"
	if e.Observers > 0 {
		members = "voters"
	}
	arbiter := ""
	switch e.Arbiter {
	case Refused:
		arbiter = ", and the arbiter has granted another side this view or a later one"
	case Unanswered:
		arbiter = ", and the arbiter does not answer"
	}
	return fmt.Sprintf("membership: no quorum: %d of %d %s of view %d are reachable, %d are needed%s", e.Reachable,
		e.Members, members, e.View, e.Needed, arbiter)
}

// EvictedError is the error of a member in state [Evicted].
type EvictedError struct {
	// Rank was the rank of the member. View is the last view it was in, and By the
	// first known view without it.
	Rank     protocol.Rank
	View, By uint64
	// Cause is OperatorEvicted or Revoked if the decision says so.
	Cause Cause
	// Successor is the process that has replaced the member: it has its identity. It
	// is nil if none is known.
	Successor *Member
}

func (e *EvictedError) Error() string {
	if s := e.Successor; s != nil {
		return fmt.Sprintf("membership: rank %d of view %d is replaced in view %d by %q at %s, incarnation %d", e.Rank,
			e.View, e.By, s.Identity, s.Address, s.Incarnation)
	}
	why := map[Cause]string{
		OperatorEvicted: ", because an operator has evicted it",
		Revoked:         ", because its certificate is revoked",
	}[e.Cause]
	return fmt.Sprintf("membership: rank %d of view %d is not in view %d%s: join again as a new incarnation", e.Rank,
		e.View, e.By, why)
}

// State returns the state of the member, and unless it is Active, an error that says
// why.
func (m *Machine) State() (State, error) {
	if m.done != nil {
		if errors.Is(m.done, ErrLeft) {
			return Left, m.done
		}
		return Evicted, m.done
	}
	if _, _, ok := m.Quorum(); !ok {
		return NoQuorum, m.quorumError(m.survivors(m.unreachable()))
	}
	return Active, nil
}

// quorumError says why some members, which are reachable, are no quorum.
func (m *Machine) quorumError(reachable set) *QuorumError {
	return &QuorumError{
		View: m.view.Number, Reachable: m.electorate.among(reachable), Members: m.electorate.count,
		Needed: m.needed(reachable), Observers: m.view.Members.Len() - m.electorate.count,
		Arbiter: m.verdict(reachable),
	}
}

// Quorum returns how many voters of the view are reachable, this member included if it is one,
// how many have to be, and whether those that are may decide the next view.
func (m *Machine) Quorum() (reachable, needed int, ok bool) {
	unreachable := m.unreachable()
	if unreachable == nil { // as usual
		return m.electorate.count, m.needed(nil), true
	}
	survivors := m.survivors(unreachable)
	return m.electorate.among(survivors), m.needed(survivors), m.isMajority(survivors)
}

// needed returns how many voters have to be reachable, given those that are; nil: all.
func (m *Machine) needed(survivors set) int {
	switch {
	case m.config.NoQuorum:
		return 1
	case m.config.Arbiter && m.verdict(survivors) != Granted:
		return m.electorate.count/2 + 1
	case !m.config.Arbiter && survivors != nil && !survivors.has(m.electorate.lowest):
		return m.electorate.count/2 + 1 // half is a quorum only with the lowest voter
	}
	return m.view.Needed()
}

// Unreachable returns the ranks of the members that this member or another one
// suspects, of those that are silent, and of those that do not answer probes.
func (m *Machine) Unreachable() (ranks []protocol.Rank) {
	for _, i := range m.unreachable().each() {
		ranks = append(ranks, m.view.Members.At(i).Rank)
	}
	return ranks
}

// isQuorum reports whether the members in s may decide the next view.
func (m *Machine) isQuorum(s set) bool {
	if m.acceptor.forced != nil {
		return s.covers(m.acceptor.forced)
	}
	return m.isMajority(s)
}

// isMajority reports whether the members in s may decide the next view without force.
func (m *Machine) isMajority(s set) bool {
	switch {
	case m.config.isQuorum != nil:
		return m.config.isQuorum(&m.view, s)
	case m.config.NoQuorum:
		return true
	default:
		return m.electorate.majority(s) || m.claims.granted != nil && s.covers(m.claims.granted)
	}
}
