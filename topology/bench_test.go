package topology_test

import (
	"fmt"
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// benchTrees calls f for trees of a size that is often simulated.
func benchTrees(b *testing.B, f func(t topology.Tree, r protocol.Rank)) {
	const size = 1 << 20
	for _, order := range []topology.Order{topology.Interleaved, topology.InOrder} {
		for _, shape := range []topology.Shape{
			topology.Binomial(), topology.KAry(4), topology.Lame(2),
			topology.Optimal(3, 2),
		} {
			b.Run(fmt.Sprintf("%v/%v", shape, order), func(b *testing.B) {
				tree := mustNew(b, shape, order, size, 0)
				r := protocol.Rank(1)
				for b.Loop() {
					f(tree, r)
					r = (r*1664525 + 1013904223) % size
				}
			})
		}
	}
}

func BenchmarkParent(b *testing.B) {
	benchTrees(b, func(t topology.Tree, r protocol.Rank) { t.Parent(r) })
}

func BenchmarkChild(b *testing.B) {
	benchTrees(b, func(t topology.Tree, r protocol.Rank) { t.Child(r, 0) })
}
