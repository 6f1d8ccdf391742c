package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// roster lists the members of the present view in ascending order of rank. Ranks
// without a member are holes. Trees are laid over all ranks, and a hole's children
// become its parent's, so that live members keep their position in them. The ring has
// no holes.
type roster struct {
	slots   protocol.Rank // number of ranks, holes included
	members []MemberID
	self    int // index of this member
}

// MemberID identifies a member of a view.
type MemberID struct {
	Rank protocol.Rank
	// Incarnation says which start of the process it is. If zero, any: the latest one
	// heard of.
	Incarnation uint64
}

// allRanks lists a group of which only the size is known.
func allRanks(size protocol.Rank) []MemberID {
	members := make([]MemberID, size)
	for r := range members {
		members[r].Rank = protocol.Rank(r)
	}
	return members
}

// size returns the number of members.
func (r *roster) size() int { return len(r.members) }

// index returns a rank's index among the members.
func (r *roster) index(rank protocol.Rank) (int, bool) {
	if len(r.members) == int(r.slots) { // no holes
		return int(rank), rank >= 0 && rank < r.slots
	}
	return slices.BinarySearchFunc(r.members, rank, func(p MemberID, rank protocol.Rank) int { return int(p.Rank - rank) })
}

// has reports whether a rank has a member.
func (r *roster) has(rank protocol.Rank) bool {
	_, ok := r.index(rank)
	return ok
}

// includes reports whether a root's incarnation is that of a member.
func (r *roster) includes(root protocol.Rank, incarnation uint64) bool {
	i, ok := r.index(root)
	return ok && (r.members[i].Incarnation == 0 || r.members[i].Incarnation == incarnation)
}

// neighbor returns the member at a distance on the ring.
func (r *roster) neighbor(distance int, rightward bool) protocol.Rank {
	if !rightward {
		distance = -distance
	}
	n := len(r.members)
	return r.members[((r.self+distance)%n+n)%n].Rank
}

// distances returns a rank's distance to the left and to the right, or 0 if the rank is
// this member's or a hole.
func (r *roster) distances(rank protocol.Rank) (left, right int) {
	i, ok := r.index(rank)
	if !ok || i == r.self {
		return 0, 0
	}
	n := len(r.members)
	right = (i - r.self + n) % n
	return n - right, right
}
