package topology_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

var orders = []topology.Order{topology.Interleaved, topology.InOrder}

// inStep are the shapes whose processes all send in step with the root: all but
// the optimal trees whose overhead does not divide the latency.
var inStep = []topology.Shape{
	topology.Binomial(),
	topology.KAry(2), topology.KAry(3), topology.KAry(4), topology.KAry(5),
	topology.Lame(2), topology.Lame(3), topology.Lame(4),
	topology.Optimal(0, 1), topology.Optimal(2, 1), topology.Optimal(5, 1),
	topology.Optimal(2, 2), topology.Optimal(4, 2), topology.Optimal(3, 3),
}

// outOfStep are optimal trees whose overhead does not divide the latency.
var outOfStep = []topology.Shape{
	topology.Optimal(1, 2), topology.Optimal(3, 2), topology.Optimal(5, 2),
	topology.Optimal(1, 3), topology.Optimal(2, 3), topology.Optimal(7, 3),
	topology.Optimal(1, 4), topology.Optimal(6, 4), topology.Optimal(3, 7),
}

// allShapes also has the chain and trees that are nearly flat.
var allShapes = slices.Concat(inStep, outOfStep, []topology.Shape{
	topology.KAry(1), topology.KAry(40), topology.Lame(1), topology.Lame(40),
})

// mustNew builds a tree whose parameters are valid.
func mustNew(tb testing.TB, shape topology.Shape, order topology.Order, size, root protocol.Rank) topology.Tree {
	tb.Helper()
	tree, err := topology.New(shape, order, size, root)
	if err != nil {
		tb.Fatal(err)
	}
	return tree
}

// draw lists the children of each rank: "0:[1 2] 1:[3]".
func draw(t topology.Tree) string {
	var lines []string
	for r := range t.Size() {
		if children := slices.Collect(topology.Children(t, r)); len(children) > 0 {
			lines = append(lines, fmt.Sprintf("%d:%v", r, children))
		}
	}
	return fmt.Sprint(lines)
}
