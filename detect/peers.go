package detect

import (
	"cmp"
	"iter"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/detection"
	"github.com/pleach-go/pleach/protocol"
)

// Peers are the processes to watch. They do not change. Detectors share them, and have
// state of their own only for the peers that something has happened to: so a view change
// costs a member what has changed, and not the size of the group.
type Peers interface {
	// Find returns the peer of a rank, or false if there is none.
	Find(rank protocol.Rank) (Peer, bool)
	// Since yields the peers whose ranks were not among earlier ones, in order of rank.
	// If before is nil, it yields all.
	Since(before Peers) iter.Seq[Peer]
}

// PeerList returns the peers of a list, which it may keep.
func PeerList(peers []Peer) Peers {
	byRank := func(a, b Peer) int { return cmp.Compare(a.Rank, b.Rank) }
	if !slices.IsSortedFunc(peers, byRank) {
		peers = slices.Clone(peers)
		slices.SortFunc(peers, byRank)
	}
	return peerList(peers)
}

// peerList is peers in order of rank.
type peerList []Peer

// Find implements [Peers].
func (l peerList) Find(rank protocol.Rank) (Peer, bool) {
	i, ok := slices.BinarySearchFunc(l, rank, func(p Peer, rank protocol.Rank) int { return cmp.Compare(p.Rank, rank) })
	if !ok {
		return Peer{}, false
	}
	return l[i], true
}

// Since implements [Peers].
func (l peerList) Since(before Peers) iter.Seq[Peer] {
	return func(yield func(Peer) bool) {
		for _, p := range l {
			if before != nil {
				if _, known := before.Find(p.Rank); known {
					continue
				}
			}
			if !yield(p) {
				return
			}
		}
	}
}

// watched is peers as the machines see them.
type watched struct{ peers Peers }

// Find implements [detection.Peers].
func (w watched) Find(rank protocol.Rank) (detection.Peer, bool) {
	p, ok := w.peers.Find(rank)
	return detection.Peer{Rank: p.Rank, Incarnation: p.Incarnation, Address: p.Address, Pause: protocol.Time(p.Pause)}, ok
}

// Since implements [detection.Peers].
func (w watched) Since(before detection.Peers) iter.Seq[detection.Peer] {
	return func(yield func(detection.Peer) bool) {
		for p := range w.peers.Since(before.(watched).peers) {
			if peer, _ := w.Find(p.Rank); !yield(peer) {
				return
			}
		}
	}
}
