package zones

import (
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// backbone is the tree of a broadcast on the backbone. It crosses to each zone once:
// along a tree over the zones to their leads. A lead first tells the other delegates of
// its zone, so that they do not take over. In the root's zone, the root is in the place of
// the lead.
//
// On the ring, delegates of one zone are neighbors, so that one of so many corrections
// goes to another zone.
type backbone struct {
	zones     topology.Tree
	delegates protocol.Rank
	root      protocol.Rank
}

func (b backbone) Size() protocol.Rank { return b.zones.Size() * b.delegates }
func (b backbone) Root() protocol.Rank { return b.root }

// head is the delegate of a zone that the message reaches first.
func (b backbone) head(zone protocol.Rank) protocol.Rank {
	if zone == b.root/b.delegates {
		return b.root
	}
	return zone * b.delegates
}

func (b backbone) Child(r protocol.Rank, i int) (protocol.Rank, bool) {
	zone, others := r/b.delegates, b.delegates-1
	if r != b.head(zone) {
		return protocol.NoRank, false
	}
	if protocol.Rank(i) >= others {
		child, ok := b.zones.Child(zone, i-int(others))
		return b.head(child), ok
	}
	other := zone*b.delegates + protocol.Rank(i)
	if other >= r {
		other++
	}
	return other, true
}

func (b backbone) Parent(r protocol.Rank) (protocol.Rank, int) {
	zone := r / b.delegates
	if head := b.head(zone); r != head {
		index := int(r % b.delegates)
		if r > head {
			index--
		}
		return head, index
	}
	parent, index := b.zones.Parent(zone)
	if parent == protocol.NoRank {
		return parent, index
	}
	return b.head(parent), index + int(b.delegates) - 1
}

func (b backbone) Depth(r protocol.Rank) int {
	zone := r / b.delegates
	depth := b.zones.Depth(zone)
	if r != b.head(zone) {
		depth++
	}
	return depth
}
