package topology_test

import (
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// TestFinishTime compares with coloring times written down one by one.
func TestFinishTime(t *testing.T) {
	for _, shape := range allShapes {
		for _, order := range orders {
			for _, size := range []protocol.Rank{1, 2, 3, 7, 30, 64, 65, 100, 333} {
				tree := mustNew(t, shape, order, size, size/2)
				if got, want := topology.FinishTime(tree, 3, 2), slowFinishTime(tree, 3, 2); got != want {
					t.Errorf("%v %#v, %d ranks: %d, want %d", order, shape, size, got, want)
				}
			}
		}
	}
}

func slowFinishTime(t topology.Tree, l, o protocol.Time) protocol.Time {
	var finish protocol.Time
	colored := make([]protocol.Time, t.Size())
	for r := range topology.Subtree(t, t.Root()) {
		if parent, index := t.Parent(r); parent != protocol.NoRank {
			colored[r] = colored[parent] + protocol.Time(index)*o + 2*o + l
		}
		finish = max(finish, colored[r])
	}
	return finish
}

// "It is possible to build an optimal communication graph that ensures minimum
// latency" (§3.2.3): no tree finishes earlier. A tree of P processes is its
// root's first child with m−1 others below, and the rest one send later.
func TestOptimal(t *testing.T) {
	const most = 64
	for o := protocol.Time(1); o <= 4; o++ {
		for l := protocol.Time(0); l <= 6; l++ {
			best := make([]protocol.Time, most+1)
			for size := 2; size <= most; size++ {
				best[size] = protocol.Never
				for m := 1; m < size; m++ {
					best[size] = min(best[size], max(2*o+l+best[m], o+best[size-m]))
				}
				tree := mustNew(t, topology.Optimal(l, o), topology.Interleaved, protocol.Rank(size), 0)
				if got := topology.FinishTime(tree, l, o); got != best[size] {
					t.Errorf("L=%d o=%d, %d ranks: %d, optimum %d", l, o, size, got, best[size])
				}
			}
		}
	}
}

// Where the overhead does not divide the latency, the closed form of §3.2.3
// takes 89, 71 and 68 steps.
func TestOptimalOutOfStep(t *testing.T) {
	for _, test := range []struct{ l, o, want protocol.Time }{{2, 3, 56}, {3, 2, 44}, {1, 2, 36}} {
		tree := mustNew(t, topology.Optimal(test.l, test.o), topology.Interleaved, 1024, 0)
		if got := topology.FinishTime(tree, test.l, test.o); got != test.want {
			t.Errorf("L=%d o=%d: %d, want %d", test.l, test.o, got, test.want)
		}
	}
}

// Fault-free times for L=2, o=1 and 2^6, 2^7, … 2^20 processes.
func TestFaultFreeTimes(t *testing.T) {
	most := 20
	if testutil.RaceEnabled || testing.Short() {
		most = 14
	}
	for _, test := range []struct {
		shape topology.Shape
		want  [15]protocol.Time
	}{
		{topology.Binomial(), [...]protocol.Time{24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80}},
		{topology.KAry(4), [...]protocol.Time{19, 23, 26, 30, 33, 37, 40, 44, 47, 51, 54, 58, 61, 65, 68}},
		{topology.Lame(2), [...]protocol.Time{17, 21, 24, 26, 29, 32, 34, 37, 41, 44, 46, 49, 52, 56, 58}},
		{topology.Optimal(2, 1), [...]protocol.Time{15, 17, 20, 22, 24, 26, 28, 30, 32, 35, 37, 39, 41, 43, 45}},
	} {
		for bits := 6; bits <= most; bits++ {
			tree := mustNew(t, test.shape, topology.Interleaved, 1<<bits, 0)
			if got := topology.FinishTime(tree, 2, 1); got != test.want[bits-6] {
				t.Errorf("%v with 2^%d ranks: %d, want %d", test.shape, bits, got, test.want[bits-6])
			}
		}
	}
}
