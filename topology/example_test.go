package topology_test

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Rank 5 starts a broadcast over nine ranks. Its children are computed by
// arithmetic alone.
func ExampleNew() {
	tree, err := topology.New(topology.Lame(3), topology.Interleaved, 9, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	for child := range topology.Children(tree, tree.Root()) {
		fmt.Print(child, " ")
	}
	fmt.Println("by time", topology.FinishTime(tree, 1, 1))
	// Output: 6 7 8 0 2 by time 7
}

// Rank 1 of a binary tree is dead, so its subtree gets nothing. Interleaved, each
// rank of that subtree is a neighbor of colored ranks.
func ExampleRing_Gaps() {
	for _, order := range []topology.Order{topology.InOrder, topology.Interleaved} {
		tree, err := topology.New(topology.KAry(2), order, 7, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		lost := map[protocol.Rank]bool{}
		for r := range topology.Subtree(tree, 1) {
			lost[r] = true
		}
		ring := topology.Ring{Size: tree.Size()}
		for gap := range ring.Gaps(func(r protocol.Rank) bool { return !lost[r] }) {
			fmt.Print(gap.Length, " from ", gap.First, "; ")
		}
		fmt.Println(order)
	}
	// Output:
	// 3 from 1; inorder
	// 1 from 1; 1 from 3; 1 from 5; interleaved
}
