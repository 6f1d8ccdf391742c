package experiments

import (
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// healed is a tree over the ranks that are left when a view has removed others: the
// children of a hole are its parent's, in its place, as package stream routes
// them. The ranks that are left are counted anew, so that the ring has no holes.
type healed struct {
	root     protocol.Rank
	parent   []protocol.Rank
	index    []int // among the parent's children
	children [][]protocol.Rank
}

// Heal lays a tree over the ranks that are left without some, which must not be
// the root. Rank i of it is the i-th of those that are left.
func Heal(tree topology.Tree, gone []protocol.Rank) topology.Tree {
	place := make([]protocol.Rank, tree.Size())
	for _, r := range gone {
		place[r] = protocol.NoRank
	}
	left := protocol.Rank(0)
	for r := range place {
		if place[r] != protocol.NoRank {
			place[r] = left
			left++
		}
	}
	h := &healed{
		root: place[tree.Root()], parent: make([]protocol.Rank, left), index: make([]int, left),
		children: make([][]protocol.Rank, left),
	}
	h.parent[h.root] = protocol.NoRank
	for r, at := range place {
		if at != protocol.NoRank {
			h.children[at] = below(tree, place, protocol.Rank(r), nil)
			for i, child := range h.children[at] {
				h.parent[child], h.index[child] = at, i
			}
		}
	}
	return h
}

// below adds the places of those next below a rank.
func below(tree topology.Tree, place []protocol.Rank, r protocol.Rank, children []protocol.Rank) []protocol.Rank {
	for i := 0; ; i++ {
		child, ok := tree.Child(r, i)
		switch {
		case !ok:
			return children
		case place[child] != protocol.NoRank:
			children = append(children, place[child])
		default:
			children = below(tree, place, child, children)
		}
	}
}

// Size implements [topology.Tree].
func (h *healed) Size() protocol.Rank { return protocol.Rank(len(h.parent)) }

// Root implements [topology.Tree].
func (h *healed) Root() protocol.Rank { return h.root }

// Parent implements [topology.Tree].
func (h *healed) Parent(r protocol.Rank) (protocol.Rank, int) { return h.parent[r], h.index[r] }

// Child implements [topology.Tree].
func (h *healed) Child(r protocol.Rank, i int) (protocol.Rank, bool) {
	if i >= len(h.children[r]) {
		return protocol.NoRank, false
	}
	return h.children[r][i], true
}

// Depth implements [topology.Tree].
func (h *healed) Depth(r protocol.Rank) (hops int) {
	for r = h.parent[r]; r != protocol.NoRank; r = h.parent[r] {
		hops++
	}
	return hops
}
