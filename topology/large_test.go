package topology_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// largeTrees calls f for trees as large as they come, with roots at and off 0.
func largeTrees(t *testing.T, f func(t *testing.T, tree topology.Tree, rng *rand.Rand)) {
	for _, shape := range slices.Concat(inStep, outOfStep) {
		for _, order := range orders {
			for _, size := range []protocol.Rank{1 << 40, 1<<40 - 12345} {
				f(t, mustNew(t, shape, order, size, 0), rand.New(rand.NewPCG(1, 2)))
				f(t, mustNew(t, shape, order, size, size/3), rand.New(rand.NewPCG(3, 4)))
			}
		}
	}
}

func TestLarge(t *testing.T) {
	largeTrees(t, func(t *testing.T, tree topology.Tree, rng *rand.Rand) {
		for range 100 {
			// Of all magnitudes, so that inner nodes are among them too.
			r := tree.Root() + protocol.Rank(rng.Int64N(1<<rng.IntN(41)))
			r %= tree.Size()
			if parent, index := tree.Parent(r); parent != protocol.NoRank {
				if child, ok := tree.Child(parent, index); !ok || child != r {
					t.Errorf("%T: child %d of %d is %d, not %d", tree, index, parent, child, r)
				}
			}
			index := 0
			for child := range topology.Children(tree, r) {
				if parent, i := tree.Parent(child); parent != r || i != index {
					t.Errorf("%T: parent of %d is %d, index %d, not %d, index %d", tree, child, parent, i, r, index)
				}
				index++
			}
			if depth := tree.Depth(r); depth < 0 || depth > 64 || depth == 0 && r != tree.Root() {
				t.Errorf("%T: %d is at depth %d", tree, r, depth)
			}
		}
	})
}

func TestNoAllocation(t *testing.T) {
	largeTrees(t, func(t *testing.T, tree topology.Tree, rng *rand.Rand) {
		r := protocol.Rank(rng.Int64N(int64(tree.Size())))
		var sum protocol.Rank
		allocs := testing.AllocsPerRun(1, func() {
			parent, index := tree.Parent(r)
			child, _ := tree.Child(parent, index)
			sum += child + protocol.Rank(tree.Depth(child))
			for child := range topology.Children(tree, parent) {
				sum += child
			}
			seen := 0
			for descendant := range topology.Subtree(tree, parent) {
				sum += descendant
				seen++
				if seen == 100 {
					break
				}
			}
		})
		if allocs != 0 {
			t.Errorf("%T: %v allocations", tree, allocs)
		}
	})
}

// Nearly flat and very long trees do not overflow.
func TestExtremes(t *testing.T) {
	const size = 1 << 40
	for _, order := range orders {
		for _, k := range []int{1 << 39, 1<<39 + 1, size - 1, size} {
			tree := mustNew(t, topology.KAry(k), order, size, 0)
			last := min(k, size-1) - 1
			child, ok := tree.Child(0, last)
			if parent, index := tree.Parent(child); !ok || parent != 0 || index != last {
				t.Errorf("%v, arity %d: last child of the root is %d (%v), its parent %d, index %d", order, k, child, ok, parent,
					index)
			}
			if child, ok := tree.Child(1, k-1); ok {
				t.Errorf("%v, arity %d: 1 has a last child %d", order, k, child)
			}
		}
		chain := mustNew(t, topology.KAry(1), order, size, 0)
		if depth := chain.Depth(size - 1); depth != size-1 {
			t.Errorf("chain has depth %d", depth)
		}
	}
}
