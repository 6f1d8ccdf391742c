package topology_test

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// TestFigures compares with the trees drawn in Corrected Trees, and with one
// grown by hand where the overhead does not divide the latency.
func TestFigures(t *testing.T) {
	for _, test := range []struct {
		name  string
		shape topology.Shape
		order topology.Order
		size  protocol.Rank
		want  string
	}{
		{"Figure 3 left", topology.KAry(2), topology.InOrder, 7, "[0:[1 4] 1:[2 3] 4:[5 6]]"},
		{"Figure 3 right", topology.KAry(2), topology.Interleaved, 7, "[0:[1 2] 1:[3 5] 2:[4 6]]"},
		{"Figure 4 left", topology.Binomial(), topology.InOrder, 8, "[0:[4 2 1] 2:[3] 4:[6 5] 6:[7]]"},
		{"Figure 4 right", topology.Binomial(), topology.Interleaved, 8, "[0:[1 2 4] 1:[3 5] 2:[6] 3:[7]]"},
		{"Figure 5", topology.Lame(3), topology.Interleaved, 9, "[0:[1 2 3 4 6] 1:[5 7] 2:[8]]"},
		// Sends at 0 2 4 | 5 | 6 | 7 7 | 8 | 9 9 9 | 10 10.
		{
			"out of step", topology.Optimal(1, 2), topology.Interleaved, 14,
			"[0:[1 2 3 5 8 12] 1:[4 6 9] 2:[7 10] 3:[11] 4:[13]]",
		},
		{"cut off", topology.Binomial(), topology.InOrder, 6, "[0:[4 2 1] 2:[3] 4:[5]]"},
		{"uneven", topology.KAry(3), topology.InOrder, 9, "[0:[1 4 7] 1:[2 3] 4:[5 6] 7:[8]]"},
		{"chain", topology.KAry(1), topology.InOrder, 3, "[0:[1] 1:[2]]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := draw(mustNew(t, test.shape, test.order, test.size, 0)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// "With k = 1 the tree is binomial" (§3.2.2); "a Lamé tree can constitute an
// optimal communication topology when 2o + L = k" (§3.2.3), with o = 1.
func TestFamily(t *testing.T) {
	same := func(a, b topology.Shape) {
		for _, order := range orders {
			for size := protocol.Rank(1); size <= 100; size++ {
				one, other := draw(mustNew(t, a, order, size, 0)), draw(mustNew(t, b, order, size, 0))
				if one != other {
					t.Fatalf("%v %v of %d ranks: %s, but %v: %s", order, a, size, one, b, other)
				}
			}
		}
	}
	same(topology.Lame(1), topology.Binomial())
	for l := range 7 {
		same(topology.Optimal(protocol.Time(l), 1), topology.Lame(l+2))
		same(topology.Optimal(protocol.Time(3*l), 3), topology.Lame(l+2))
	}
}

// The closed forms of §3.2, where they hold: binomial children are r + 2^i, in
// order r XOR a bit below the lowest set one.
func TestBinomialBits(t *testing.T) {
	const size = 300
	tree := mustNew(t, topology.Binomial(), topology.Interleaved, size, 0)
	inOrder := mustNew(t, topology.Binomial(), topology.InOrder, size, 0)
	for r := protocol.Rank(1); r < size; r++ {
		highest := protocol.Rank(1)
		for 2*highest <= r {
			highest *= 2
		}
		if parent, _ := tree.Parent(r); parent != r-highest {
			t.Errorf("interleaved parent of %d is %d, want %d", r, parent, r-highest)
		}
		if parent, _ := inOrder.Parent(r); parent != r&(r-1) {
			t.Errorf("in-order parent of %d is %d, want %d", r, parent, r&(r-1))
		}
	}
}
