package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// roster is the members of the present view. Ranks without a member are holes. Trees are
// laid over all ranks, and a hole's children become its parent's, so that live members
// keep their position in them. The ring has no holes.
type roster struct {
	slots   protocol.Rank // number of ranks, holes included
	members Members
	self    int // index of this member
}

// Members are the members of a view in ascending order of rank. They do not change. The
// streams look up the few that they deal with, and copy none: there may be many.
type Members interface {
	Len() int
	// At returns the member with an index.
	At(i int) MemberID
	// Index returns the index of a rank's member.
	Index(r protocol.Rank) (int, bool)
}

// MemberID identifies a member of a view.
type MemberID struct {
	Rank protocol.Rank
	// Incarnation says which start of the process it is. If zero, any: the latest one
	// heard of.
	Incarnation uint64
}

// MemberList is a list of members in ascending order of rank.
type MemberList []MemberID

// Len implements [Members].
func (l MemberList) Len() int { return len(l) }

// At implements [Members].
func (l MemberList) At(i int) MemberID { return l[i] }

// Index implements [Members].
func (l MemberList) Index(r protocol.Rank) (int, bool) {
	return slices.BinarySearchFunc(l, r, func(m MemberID, r protocol.Rank) int { return int(m.Rank - r) })
}

// allRanks is a group of which only the size is known.
type allRanks protocol.Rank

// Len implements [Members].
func (n allRanks) Len() int { return int(n) }

// At implements [Members].
func (n allRanks) At(i int) MemberID { return MemberID{Rank: protocol.Rank(i)} }

// Index implements [Members].
func (n allRanks) Index(r protocol.Rank) (int, bool) { return int(r), r >= 0 && r < protocol.Rank(n) }

// size returns the number of members.
func (r *roster) size() int { return r.members.Len() }

// index returns a rank's index among the members.
func (r *roster) index(rank protocol.Rank) (int, bool) { return r.members.Index(rank) }

// has reports whether a rank has a member.
func (r *roster) has(rank protocol.Rank) bool {
	_, ok := r.index(rank)
	return ok
}

// includes reports whether a root's incarnation is that of a member.
func (r *roster) includes(root protocol.Rank, incarnation uint64) bool {
	i, ok := r.index(root)
	if !ok {
		return false
	}
	is := r.members.At(i).Incarnation
	return is == 0 || is == incarnation
}

// neighbor returns the member at a distance on the ring.
func (r *roster) neighbor(distance int, rightward bool) protocol.Rank {
	if !rightward {
		distance = -distance
	}
	n := r.size()
	return r.members.At(((r.self+distance)%n + n) % n).Rank
}

// distances returns a rank's distance to the left and to the right, or 0 if the rank is
// this member's or a hole.
func (r *roster) distances(rank protocol.Rank) (left, right int) {
	i, ok := r.index(rank)
	if !ok || i == r.self {
		return 0, 0
	}
	n := r.size()
	right = (i - r.self + n) % n
	return n - right, right
}
