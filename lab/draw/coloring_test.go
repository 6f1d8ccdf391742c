package draw

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Figure 3 of Corrected Trees: process 1 of a binary tree is dead, and with it
// its subtree. Interleaving makes three gaps of one out of one gap of three.
func TestColor(t *testing.T) {
	for _, test := range []struct {
		order     topology.Order
		unreached []protocol.Rank
		gaps      int
		maxGap    protocol.Rank
	}{
		{topology.InOrder, []protocol.Rank{2, 3}, 1, 3},
		{topology.Interleaved, []protocol.Rank{3, 5}, 3, 1},
	} {
		c := color(t, topology.KAry(2), test.order, 7, 1)
		if !slices.Equal(c.Unreached, test.unreached) || len(c.Gaps) != test.gaps || c.MaxGap != test.maxGap {
			t.Errorf("%v: unreached %v, gaps %v, longest %d", test.order, c.Unreached, c.Gaps, c.MaxGap)
		}
		if !slices.Equal(c.Failed, []protocol.Rank{1}) || c.Depth != 2 || c.FinishTime != 10 {
			t.Errorf("%v: failed %v, depth %d, finish time %d", test.order, c.Failed, c.Depth, c.FinishTime)
		}
	}
}

func TestColorNobodyDead(t *testing.T) {
	c := color(t, topology.Binomial(), topology.Interleaved, 100)
	if slices.ContainsFunc(c.Marks, func(m Mark) bool { return m != Colored }) || c.MaxGap != 0 {
		t.Errorf("marks %v, longest gap %d", c.Marks, c.MaxGap)
	}
}
