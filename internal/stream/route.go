package stream

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// route finds the parent and the children of this member in the tree of a flow's root.
// The tree spans all ranks and is routed around known holes: a hole's children take its
// position among those of its parent.
func (m *Member) route(f *flow) error {
	tree, err := topology.New(m.config.Shape, topology.Interleaved, m.roster.slots, f.root)
	if err != nil {
		return fmt.Errorf("stream: tree of root %d: %w", f.root, err)
	}
	f.parent = protocol.NoRank
	for r := m.config.Rank; r != f.root; {
		if r, _ = tree.Parent(r); m.roster.has(r) {
			f.parent = r
			break
		}
	}
	f.children = m.liveChildren(tree, m.config.Rank, nil)
	f.foster = foster{parent: protocol.NoRank}
	return nil
}

// liveChildren appends the nearest members below a rank.
func (m *Member) liveChildren(tree topology.Tree, r protocol.Rank, children []protocol.Rank) []protocol.Rank {
	for i := 0; ; i++ {
		child, ok := tree.Child(r, i)
		switch {
		case !ok:
			return children
		case m.roster.has(child):
			children = append(children, child)
		default:
			children = m.liveChildren(tree, child, children)
		}
	}
}
