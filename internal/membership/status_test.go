package membership

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

func TestTreeParent(t *testing.T) {
	for _, size := range []protocol.Rank{2, 7, 64, 100} {
		tree, err := topology.New(topology.Binomial(), topology.Interleaved, size, 0)
		if err != nil {
			t.Fatal(err)
		}
		for r := protocol.Rank(1); r < size; r++ {
			if want, _ := tree.Parent(r); treeParent(int(r)) != int(want) {
				t.Errorf("of %d: the parent of %d is %d, want %d", size, r, treeParent(int(r)), want)
			}
		}
	}
}
