package member

import (
	"iter"

	"github.com/pleach-go/pleach/internal/machine/detection"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Watched are the members of a view that a detector watches for one of them. It copies none: there
// may be many members, and detectors ask about a few.
type Watched struct {
	members membership.Members
	self    int // index of the member that watches
	address func(*membership.Member) string
}

// NewWatched returns the members of a view but one, at the addresses where they are.
func NewWatched(v *membership.View, self protocol.Rank, address func(*membership.Member) string) *Watched {
	i, _ := v.Members.Index(self)
	return &Watched{v.Members, i, address}
}

// Find implements [detection.Peers].
func (w *Watched) Find(rank protocol.Rank) (detection.Peer, bool) {
	i, ok := w.members.Index(rank)
	if !ok || i == w.self {
		return detection.Peer{}, false
	}
	return w.peer(i), true
}

// Since implements [detection.Peers].
func (w *Watched) Since(before detection.Peers) iter.Seq[detection.Peer] {
	var known membership.Members
	if b, ok := before.(*Watched); ok {
		known = b.members
	}
	return func(yield func(detection.Peer) bool) {
		for m := range w.members.Since(known) {
			if i, _ := w.members.Index(m.Rank); i != w.self && known.Find(m.Rank) == nil && !yield(w.peer(i)) {
				return
			}
		}
	}
}

// distantProbeDelay is how long a member that loses its connection to another waits before it
// probes it, if other members are closer to that one. It is longer than a view change takes.
const distantProbeDelay protocol.Time = 50e6

// peer returns the member with an index as a peer. The coordinator, its successor and the ring
// neighbors are connected to a member anyway: they probe it at once when the connection breaks,
// and the others leave it to them at first.
func (w *Watched) peer(i int) detection.Peer {
	m := w.members.At(i)
	peer := detection.Peer{Rank: m.Rank, Incarnation: m.Incarnation, Address: w.address(m)}
	if distance := max(i-w.self, w.self-i); w.self > 1 && distance > 1 && distance < w.members.Len()-1 {
		peer.Pause = distantProbeDelay
	}
	if m.Nonce == 0 {
		peer.Incarnation = 0 // which process it is, is known when it connects
	}
	return peer
}
