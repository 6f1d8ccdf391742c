package detect

import (
	"cmp"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// peerList is the peers of a view in order of rank. Detectors share the list that Watch
// gets, and have state of their own only for the peers that something has happened to:
// so a view change costs a member what has changed, and not the size of the group.
type peerList []Peer

// newPeerList keeps the list itself if it is in order already.
func newPeerList(peers []Peer) peerList {
	byRank := func(a, b Peer) int { return cmp.Compare(a.Rank, b.Rank) }
	if !slices.IsSortedFunc(peers, byRank) {
		peers = slices.Clone(peers)
		slices.SortFunc(peers, byRank)
	}
	return peers
}

// find returns the peer of a rank.
func (l peerList) find(rank protocol.Rank) (Peer, bool) {
	i, ok := slices.BinarySearchFunc(l, rank, func(p Peer, rank protocol.Rank) int { return cmp.Compare(p.Rank, rank) })
	if !ok {
		return Peer{}, false
	}
	return l[i], true
}

// is reports whether an incarnation is that of the peer, as far as the view knows.
func (p *Peer) is(incarnation uint64) bool {
	return p.Incarnation == 0 || p.Incarnation == incarnation
}
