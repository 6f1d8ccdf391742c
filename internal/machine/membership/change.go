package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// An operator wants to know why a member is gone, and asks any other member. Only the
// coordinator knows the reports that a view follows from, so the decision carries the reason
// of each removal: all members of a view give the same one.

// Cause is why a member is in a view, or is not in it any more. Decisions encode those of
// removals, so their numbers belong to the protocol.
type Cause uint8

// The causes.
const (
	// Suspected: a detector of the member By has reported it.
	Suspected Cause = iota
	// Unresponsive: it has not answered the member By, which coordinated the change.
	Unresponsive
	// Departed: it has asked to leave.
	Departed
	// Replaced: a new process has its identity.
	Replaced
	// Forced: an operator has decided that the members continue without it.
	Forced
	// Joined: it has asked to join.
	Joined
	// Changed: it has other attributes.
	Changed
	// OperatorEvicted: an operator has asked the member By to evict it.
	OperatorEvicted
	// Revoked: the member By has found its certificate or its identity denied.
	Revoked
)

// Change is one difference between a view and the view before.
type Change struct {
	// Member is the member, in the view before if it is removed.
	Member *Member
	Cause  Cause
	// By is the member that the cause comes from, or NoRank if it is Member itself or is
	// not known.
	By protocol.Rank
}

// reason is why a member is removed.
type reason struct {
	cause Cause
	by    protocol.Rank
}

// Changes yields how the view that is being installed differs from the view before: first
// the members that are removed, then those that have joined, then those that have changed.
// It is for [Log.Install]. At other times there are none.
func (m *Machine) Changes(yield func(Change) bool) {
	v := m.acceptor.decided
	if v == nil {
		return
	}
	for k, i := range v.removed.each() {
		if why := v.reason(k); !yield(Change{m.view.Members.At(i), why.cause, why.by}) {
			return
		}
	}
	for i := range v.added {
		if !yield(Change{&v.added[i], Joined, protocol.NoRank}) {
			return
		}
	}
	for i := range v.changed {
		if !yield(Change{&v.changed[i], Changed, protocol.NoRank}) {
			return
		}
	}
}

// reason returns why the k-th of the removed members is removed.
func (v *value) reason(k int) reason {
	if k < len(v.reasons) {
		return v.reasons[k]
	}
	return reason{Unresponsive, protocol.NoRank}
}

// composeReasons notes why members are removed, as far as this member knows, which
// proposes it.
func (m *Machine) composeReasons(v *value) {
	indices := v.removed.each()
	known := make(map[int]reason, len(indices))
	m.knownSuspicions(func(i int, why reason) {
		if !known[i].cause.evicts() {
			known[i] = why
		}
	})
	for i := range m.candidates {
		if holder, ok := m.named(m.candidates[i].Identity); ok && !known[holder].cause.evicts() {
			known[holder] = reason{Replaced, protocol.NoRank}
		}
	}
	for _, l := range m.leavers {
		if i, _ := m.view.index(l.rank); !known[i].cause.evicts() {
			known[i] = reason{Departed, protocol.NoRank}
		}
	}
	for _, i := range indices {
		why, ok := known[i]
		switch {
		case m.acceptor.forced != nil && !m.acceptor.forced.has(i):
			why = reason{Forced, m.config.Self.Rank}
		case !ok:
			why = reason{Unresponsive, m.config.Self.Rank}
		}
		v.reasons = append(v.reasons, why)
	}
}

// knownSuspicions calls f for each member that is suspected, by index, and each member
// that suspects it: this one last.
func (m *Machine) knownSuspicions(f func(i int, why reason)) {
	report := func(by protocol.Rank, list []suspect) {
		for _, x := range list {
			if i, ok := m.suspectIndex(x); ok && i != m.self {
				f(i, reason{m.told(x.cause), by})
			}
		}
	}
	for _, r := range m.suspicions.reported {
		report(r.by, r.suspects)
	}
	report(m.config.Self.Rank, m.suspicions.own)
}

// Accusers returns which members suspect which, by rank, as far as this one knows. A member
// that this one cannot reach for another reason is not among them.
func (m *Machine) Accusers() map[protocol.Rank][]protocol.Rank {
	accusers := make(map[protocol.Rank][]protocol.Rank)
	m.knownSuspicions(func(i int, why reason) {
		r := m.view.Members.At(i).Rank
		if !slices.Contains(accusers[r], why.by) { // two relays may tell it
			accusers[r] = append(accusers[r], why.by)
		}
	})
	return accusers
}
