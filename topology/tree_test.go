package topology_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// TestTree checks for every shape, order, size and a few roots that it is a tree
// and that its answers agree with each other.
func TestTree(t *testing.T) {
	sizes := []protocol.Rank{127, 128, 129, 511, 1000}
	for size := protocol.Rank(1); size <= 70; size++ {
		sizes = append(sizes, size)
	}
	for _, shape := range allShapes {
		for _, order := range orders {
			for _, size := range sizes {
				for _, root := range slices.Compact([]protocol.Rank{0, size / 3, size - 1}) {
					if err := checkTree(mustNew(t, shape, order, size, root), size, root); err != nil {
						t.Fatalf("%v %#v, %d ranks, root %d: %v", order, shape, size, root, err)
					}
				}
			}
			tree := mustNew(t, shape, order, 1000, 0)
			for r := range tree.Size() {
				if order == topology.Interleaved && !slices.IsSorted(slices.Collect(topology.Children(tree, r))) {
					t.Errorf("%#v: children of %d do not ascend", shape, r)
				}
			}
		}
	}
}

func checkTree(t topology.Tree, size, root protocol.Rank) error {
	if t.Size() != size || t.Root() != root {
		return fmt.Errorf("has size %d and root %d", t.Size(), t.Root())
	}
	if parent, index := t.Parent(root); parent != protocol.NoRank || index != 0 || t.Depth(root) != 0 {
		return fmt.Errorf("root has parent %d, index %d, depth %d", parent, index, t.Depth(root))
	}
	children := protocol.Rank(0)
	for r := range size {
		index := 0
		for child := range topology.Children(t, r) {
			if child < 0 || child >= size || child == root {
				return fmt.Errorf("%d has child %d", r, child)
			}
			if parent, i := t.Parent(child); parent != r || i != index {
				return fmt.Errorf("child %d of %d is %d, whose parent is %d, index %d", index, r, child, parent, i)
			}
			if t.Depth(child) != t.Depth(r)+1 {
				return fmt.Errorf("%d is at depth %d, its child %d at %d", r, t.Depth(r), child, t.Depth(child))
			}
			index++
		}
		children += protocol.Rank(index)
		for _, i := range []int{-1, index, index + 1, 1 << 40} {
			if child, ok := t.Child(r, i); ok {
				return fmt.Errorf("%d has %d children, but child %d is %d", r, index, i, child)
			}
		}
	}
	if children != size-1 {
		return fmt.Errorf("%d ranks are children", children)
	}
	return checkSubtrees(t)
}

// checkSubtrees checks that subtrees hold each rank once, after its parent.
func checkSubtrees(t topology.Tree) error {
	seen := make([]bool, t.Size())
	count := protocol.Rank(0)
	for r := range topology.Subtree(t, t.Root()) {
		if parent, _ := t.Parent(r); seen[r] || parent != protocol.NoRank && !seen[parent] {
			return fmt.Errorf("subtree of the root shows %d twice or before its parent %d", r, parent)
		}
		seen[r] = true
		count++
	}
	if count != t.Size() {
		return fmt.Errorf("subtree of the root has %d ranks", count)
	}
	size := protocol.Rank(1)
	for child := range topology.Children(t, t.Root()) {
		for range topology.Subtree(t, child) {
			size++
		}
	}
	if size != t.Size() {
		return fmt.Errorf("subtrees of the root's children and the root have %d ranks", size)
	}
	return nil
}

// Loops over children and subtrees may stop early.
func TestWalkStops(t *testing.T) {
	tree := mustNew(t, topology.Binomial(), topology.Interleaved, 64, 0)
	for r := range topology.Subtree(tree, 1) {
		if r == 3 {
			break
		}
	}
	for child := range topology.Children(tree, 0) {
		if child > 1 {
			t.Errorf("went on to %d", child)
		}
		break
	}
}

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		shape      topology.Shape
		order      topology.Order
		size, root protocol.Rank
		want       string
	}{
		{topology.Binomial(), 0, 0, 0, "topology: 0 ranks: choose between 1 and 2^40"},
		{topology.Binomial(), 0, 1<<40 + 1, 0, "topology: 1099511627777 ranks: choose between 1 and 2^40"},
		{topology.Binomial(), 0, 4, 4, "topology: root 4 is not one of the ranks 0 to 3"},
		{topology.Binomial(), 0, 4, -1, "topology: root -1 is not one of the ranks 0 to 3"},
		{topology.Binomial(), 2, 4, 0, "topology: order 2 is unknown: choose interleaved or inorder"},
		{topology.KAry(0), 0, 4, 0, "topology: kary:0: choose a number between 1 and 2^40"},
		{topology.Lame(-1), 0, 4, 0, "topology: lame:-1: choose a number between 1 and 2^40"},
		{topology.Optimal(2, 0), 0, 4, 0, "topology: optimal tree for overhead 0: choose an overhead between 1 and 2^40"},
		{topology.Optimal(-1, 1), 0, 4, 0, "topology: optimal tree for latency -1: choose a latency between 0 and 2^40"},
		{
			topology.Lame(1 << 30), 0, 1 << 40, 0,
			"topology: lame:1073741824 tree over 1099511627776 ranks takes more than 4194304 send slots: choose a smaller K, or give latency and overhead in a coarser unit",
		},
	} {
		if tree, err := topology.New(test.shape, test.order, test.size, test.root); err == nil || err.Error() != test.want ||
			tree != nil {
			t.Errorf("got  %v, %v\nwant %s", tree, err, test.want)
		}
	}
}
