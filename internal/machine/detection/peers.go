package detection

import (
	"iter"

	"github.com/pleach-go/pleach/protocol"
)

// Peer is a process to watch.
type Peer struct {
	Rank        protocol.Rank
	Incarnation uint64        // 0: unknown, and the first process met under the rank counts
	Address     string        // "": unknown, so that the peer cannot be probed
	Pause       protocol.Time // wait before the first probe after a lost connection
}

// is reports whether an incarnation is that of the peer, as far as the view knows.
func (p *Peer) is(incarnation uint64) bool { return p.Incarnation == 0 || p.Incarnation == incarnation }

// Peers are the processes to watch: a view without this member. They do not change.
type Peers interface {
	// Find returns the peer of a rank, or false if there is none.
	Find(rank protocol.Rank) (Peer, bool)
	// Since yields the peers whose ranks were not among earlier ones.
	Since(before Peers) iter.Seq[Peer]
}
