package topology

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Tree is one broadcast tree over the ranks 0 … Size()−1. The result for any
// other rank is undefined.
type Tree interface {
	// Size returns the number of ranks.
	Size() protocol.Rank
	// Root returns the rank that starts the broadcast.
	Root() protocol.Rank
	// Parent returns r's parent and r's position among the parent's children
	// in sending order; for the root it returns (NoRank, 0).
	Parent(r protocol.Rank) (parent protocol.Rank, index int)
	// Child returns r's i-th child in sending order, from 0, and whether there
	// is one.
	Child(r protocol.Rank, i int) (protocol.Rank, bool)
	// Depth returns the number of hops from the root to r.
	Depth(r protocol.Rank) int
}

// limit bounds sizes and shape parameters. It is far above any real group and low
// enough that no sum or product in this package overflows.
const limit = 1 << 40

// New returns a tree of the given shape and order over size ranks. Its arithmetic
// uses ranks relative to the root (virtual ranks, in MPI's words), so any rank can
// be the root of the same tree.
func New(shape Shape, order Order, size, root protocol.Rank) (Tree, error) {
	if size < 1 || size > limit {
		return nil, fmt.Errorf("topology: %d ranks: choose between 1 and 2^40", size)
	}
	if root < 0 || root >= size {
		return nil, fmt.Errorf("topology: root %d is not one of the ranks 0 to %d", root, size-1)
	}
	if order > InOrder {
		return nil, fmt.Errorf("topology: order %d is unknown: choose %s or %s", order, Interleaved, InOrder)
	}
	if err := shape.check(); err != nil {
		return nil, err
	}
	tree, err := newAtZero(shape, order, size)
	if err != nil || root == 0 {
		return tree, err
	}
	return rooted{Tree: tree, ring: Ring{Size: size}, root: root}, nil
}

// newAtZero chooses the arithmetic for a tree whose root is rank 0.
func newAtZero(shape Shape, order Order, size protocol.Rank) (Tree, error) {
	if shape.kind == kary {
		// A process has at most size−1 children, so a larger k changes nothing.
		k := min(protocol.Rank(shape.k), size)
		switch {
		case k == 1:
			return chain(size), nil
		case order == InOrder:
			return karyInOrder{size: size, k: k}, nil
		default:
			return newKaryInterleaved(size, k), nil
		}
	}
	times, err := newTimetable(shape, size)
	if err != nil {
		return nil, err
	}
	if order == InOrder {
		return inOrder{times}, nil
	}
	return interleaved{times}, nil
}

// rooted rotates a tree whose root is rank 0 along the ring to another root.
type rooted struct {
	Tree
	ring Ring
	root protocol.Rank
}

func (t rooted) Root() protocol.Rank { return t.root }

func (t rooted) Parent(r protocol.Rank) (protocol.Rank, int) {
	parent, index := t.Tree.Parent(t.ring.Left(r, t.root))
	if parent == protocol.NoRank {
		return parent, index
	}
	return t.ring.Right(parent, t.root), index
}

func (t rooted) Child(r protocol.Rank, i int) (protocol.Rank, bool) {
	child, ok := t.Tree.Child(t.ring.Left(r, t.root), i)
	return t.ring.Right(child, t.root), ok
}

func (t rooted) Depth(r protocol.Rank) int { return t.Tree.Depth(t.ring.Left(r, t.root)) }
