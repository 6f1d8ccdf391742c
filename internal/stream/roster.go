package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// lineup is who is in the group: the members of the present view, in ascending
// order of their ranks. Ranks that nobody has are holes. Trees are laid over all
// ranks, and a hole's children are its parent's, so that those who live keep
// their place in them; the ring has no holes.
type roster struct {
	slots   protocol.Rank // ranks, holes included
	members []MemberID
	self    int // this member's place
}

// MemberID is a member of a view.
type MemberID struct {
	Rank protocol.Rank
	// Incarnation is which start of it this is. 0: any, the latest that has been
	// heard of.
	Incarnation uint64
}

// everybody is the lineup of a group of which nothing is known but its size.
func allRanks(size protocol.Rank) []MemberID {
	members := make([]MemberID, size)
	for r := range members {
		members[r].Rank = protocol.Rank(r)
	}
	return members
}

// size is how many are in it.
func (l *roster) size() int { return len(l.members) }

// place finds a rank's place.
func (l *roster) index(r protocol.Rank) (int, bool) {
	if len(l.members) == int(l.slots) { // no holes
		return int(r), r >= 0 && r < l.slots
	}
	return slices.BinarySearchFunc(l.members, r, func(p MemberID, r protocol.Rank) int { return int(p.Rank - r) })
}

// has reports whether somebody has a rank.
func (l *roster) has(r protocol.Rank) bool {
	_, ok := l.index(r)
	return ok
}

// admits reports whether a root's incarnation is that of a member.
func (l *roster) includes(root protocol.Rank, incarnation uint64) bool {
	i, ok := l.index(root)
	return ok && (l.members[i].Incarnation == 0 || l.members[i].Incarnation == incarnation)
}

// neighbor is who is at a distance from this member on the ring.
func (l *roster) neighbor(distance int, rightward bool) protocol.Rank {
	if !rightward {
		distance = -distance
	}
	n := len(l.members)
	return l.members[((l.self+distance)%n+n)%n].Rank
}

// distances is how far away a rank is, on either side; 0 if it is not in.
func (l *roster) distances(r protocol.Rank) (left, right int) {
	i, ok := l.index(r)
	if !ok || i == l.self {
		return 0, 0
	}
	n := len(l.members)
	right = (i - l.self + n) % n
	return n - right, right
}
