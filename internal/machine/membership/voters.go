package membership

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// Every member of a view is a voter or an observer. Observers get and send everything, and
// take part in changes: they freeze, flush and install. But only voters count: a view is
// decided by the voters of the view before, and the coordinator is a voter. So any number of
// observers may die at once. A member changes its role by a view, as it changes its meta.

// ObserverVersion is the first protocol version of a group that may have observers.
const ObserverVersion = wire.ObserverVersion

// Reasons to refuse an observer.
var (
	// ErrLastVoter: a group without voters could decide nothing.
	ErrLastVoter = errors.New("membership: the last voter cannot be an observer")
	// ErrObserverQuorum: without majorities, there is nothing for which an observer would not count.
	ErrObserverQuorum = errors.New("membership: a group that needs no quorum has no observers")
)

// ObserverVersionError means that a group cannot have observers yet: not all of its members
// speak [ObserverVersion], or none has raised its version.
type ObserverVersionError struct{ Version uint16 } // of the group

func (e *ObserverVersionError) Error() string {
	return fmt.Sprintf("membership: the group has protocol version %d, and observers need %d", e.Version, ObserverVersion)
}

// RefusesObserver reports whether a process was refused because it cannot be an observer. It could
// be a voter.
func RefusesObserver(err error) bool {
	return errors.Is(err, ErrLastVoter) || errors.Is(err, ErrObserverQuorum) || errors.As(err, new(*ObserverVersionError))
}

// observers returns how many members are observers.
func (l Members) observers() (n int) {
	for k := range l.chunks {
		n += bits.OnesCount64(l.chunks[k].observers)
	}
	return n
}

// Voters returns the number of members that count for a quorum.
func (v *View) Voters() int { return v.Members.Len() - v.Members.observers() }

// voters returns the members that count for a quorum. It is nil if all do, as usual.
func (v *View) voters() set {
	if v.Members.observers() == 0 {
		return nil
	}
	s := newSet(v.Members.Len())
	for i, m := range v.Members.All() {
		if !m.Observer {
			s.add(i)
		}
	}
	return s
}

// Leader returns the voter with the lowest rank, or nil if the view is empty.
func (v *View) Leader() *Member {
	for _, m := range v.Members.All() {
		if !m.Observer {
			return m
		}
	}
	return nil
}

// Needed returns the size of the smallest quorum for the next view, which includes
// the lowest voter, or is granted the view by an arbiter.
func (v *View) Needed() int { return (v.Voters() + 1) / 2 }

// Tie says what exactly half of the voters can decide.
type Tie uint8

// The rules.
const (
	LowestDecides Tie = iota // the next view, if the lowest voter is among them: there is no arbiter
	NoneDecides              // nothing: there is an arbiter, which they do not ask
	AnyMayDecide             // the next view, if the arbiter grants it
)

// CanDecideWithout reports whether the members can decide the next view without some of
// them.
func (v *View) CanDecideWithout(gone func(*Member) bool, t Tie) bool {
	rest := newSet(v.Members.Len())
	for i, m := range v.Members.All() {
		if !gone(m) {
			rest.add(i)
		}
	}
	e := v.electorate()
	e.arbiter = t != LowestDecides
	return e.majority(rest) || t == AnyMayDecide && e.half(rest)
}

// electorate is who counts in a view.
type electorate struct {
	voters  set  // nil: all members
	count   int  // of the voters
	lowest  int  // index of the voter with the lowest rank
	arbiter bool // decides between two halves, instead of the lowest voter
}

// electorate returns who counts in the view.
func (v *View) electorate() electorate {
	e := electorate{voters: v.voters(), count: v.Members.Len()}
	if e.voters != nil {
		e.count = e.voters.count()
		for e.lowest < v.Members.Len() && !e.voters.has(e.lowest) {
			e.lowest++
		}
	}
	return e
}

// has reports whether a member is a voter, by its index.
func (e *electorate) has(i int) bool { return e.voters == nil || e.voters.has(i) }

// among returns how many of some members are voters.
func (e *electorate) among(s set) int {
	if e.voters == nil {
		return s.count()
	}
	return s.common(e.voters).count()
}

// majority reports whether s is a quorum: more than half of the voters, or without an arbiter
// exactly half with the lowest voter. Any two quorums intersect, which is what Paxos requires.
func (e *electorate) majority(s set) bool {
	n := e.among(s)
	return 2*n > e.count || !e.arbiter && 2*n == e.count && s.has(e.lowest)
}

// half reports whether s has exactly half of the voters.
func (e *electorate) half(s set) bool { return 2*e.among(s) == e.count }

// last reports whether a member is the only voter.
func (e *electorate) last(i int) bool { return e.count == 1 && e.has(i) }

// checkVoters returns an error if a view has no voters, or observers before its members know
// what they are.
func (v *View) checkVoters() error {
	switch n := v.Members.observers(); {
	case n == 0:
		return nil
	case n == v.Members.Len():
		return fmt.Errorf("%w: view %d has no voters", ErrView, v.Number)
	case v.Version < ObserverVersion:
		return fmt.Errorf("%w: view %d has observers in protocol version %d", ErrView, v.Number, v.Version)
	}
	return nil
}

// SetObserver asks for a view in which this member is an observer, or a voter. A later call
// replaces the request. It is refused with [ErrLastVoter] if no voter would be left, now or
// when the others have changed: then the request ends.
func (m *Machine) SetObserver(now protocol.Time, observer bool) error {
	m.now = now
	if err := m.observerRefusal(&m.config.Self, observer); err != nil {
		return err
	}
	m.wanted.observer = observer
	m.reporter.changed()
	return nil
}

// observerRefusal returns why a process cannot be an observer in the next view. If a member
// has its identity, it is to take the place of that one.
func (m *Machine) observerRefusal(c *Member, observer bool) error {
	switch {
	case !observer:
		return nil
	case m.config.NoQuorum:
		return ErrObserverQuorum
	case m.view.Version < ObserverVersion:
		return &ObserverVersionError{m.view.Version}
	}
	if holder, ok := m.named(c.Identity); ok && m.electorate.last(holder) {
		return fmt.Errorf("%w: %q is that of view %d", ErrLastVoter, c.Identity, m.view.Number)
	}
	return nil
}

// votersWithout returns the voters that are not among the removed members.
func (m *Machine) votersWithout(removed set) set {
	voters := removed.complement(m.view.Members.Len())
	if m.electorate.voters != nil {
		voters = voters.common(m.electorate.voters)
	}
	return voters
}

// spare takes a member from a set of voters, unless it is the last one, and reports whether the
// set does without it.
func spare(voters set, i int) bool {
	if voters.has(i) && voters.count() == 1 {
		return false
	}
	voters.remove(i)
	return true
}

// candidatesLeaving returns the candidates for the next view, and takes from a set the voters that
// become observers by a restart. The last one keeps its place, and its candidate waits.
func (m *Machine) candidatesLeaving(voters set) (list []*candidate) {
	for i := range m.candidates {
		c := &m.candidates[i]
		if holder, ok := m.named(c.Identity); ok && c.Observer && !spare(voters, holder) {
			continue
		}
		list = append(list, c)
	}
	return list
}
