package broadcast_test

import (
	"fmt"
	"testing"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Corrected Trees §3.3: "Tree-based dissemination allows a simple optimization
// of opportunistic correction that preserves non-faulty liveness. Given processes
// i and j, such that j − d < i < j, assume i receives a message from j. Process i
// can be sure that j also covers processes j − d, …, i + d with correction
// messages."
//
// It cannot: j may have heard from i meanwhile, and be sure of the same.
//
// The smallest counterexample is a Lamé tree of nine, k = 2, d = 4, L = o = 1,
// with 1, 5 and 7 dead. Rank 1 was to send to 6, so 6 depends on correction, and
// all processes are within d = 4 of each other. None sends to it:
//
//	t=5   3 starts to correct: right to 4, left to 2, right to 5.
//	t=8   3 has heard from 2, one to its left: it leaves 4, 5 and 6 (its right,
//	      up to d − 1 = 3) to 2, and sends to 7 next.
//	t=9   2, which has sent right to 3 and 4, hears from 3, one to its right: it
//	      leaves its right side, 5 and 6, to 3. The two messages have crossed,
//	      and 6 is left to each by the other.
//	t=8   4 is colored by 3, one to its left: it leaves 5, 6 and 7 to 3.
//	t=9   8, which has sent left to 7, hears from 0, one to its right: it leaves 6
//	      and 5 (its left, up to 3) to 0, and sends to 4 next.
//	t=10  0, which has sent left to 8 and 7, hears from 8, one to its left: it
//	      leaves its left side, 6 and 5, to 8. Crossed again.
//
// With d = 3, the least distance at which the rule fails, four must be dead: in
// the binomial tree of nine 0 and 8 rely on each other for 6, its neighbors 5
// and 7 rely on those, and none wraps around the ring.
func TestOptimizedIsNotSafe(t *testing.T) {
	for _, c := range []struct {
		shape     topology.Shape
		size      protocol.Rank
		l         protocol.Time
		d         int
		dead      []protocol.Rank
		unreached protocol.Rank
	}{
		{topology.Lame(2), 9, 1, 4, []protocol.Rank{1, 5, 7}, 6},
		{topology.Binomial(), 9, 1, 3, []protocol.Rank{1, 2, 3, 4}, 6},
		{topology.Lame(2), 9, 1, 3, []protocol.Rank{1, 2, 3, 5}, 6},
		{topology.Binomial(), 9, 2, 4, []protocol.Rank{1, 2, 3, 4}, 5},
		{topology.KAry(4), 64, 2, 4, []protocol.Rank{3, 9, 10, 40, 62}, 41},
	} {
		faults := logp.Faults{Dead: c.dead}
		for _, rule := range []string{"opportunistic", "safe"} {
			newTrial(t, treeOf(c.shape, c.size, c.l, 1, fmt.Sprintf("%s:%d", rule, c.d), overlapped)).reachesAll(faults)
		}
		trial := newTrial(t, treeOf(c.shape, c.size, c.l, 1, fmt.Sprintf("optimized:%d", c.d), overlapped))
		trial.run(faults)
		if got := trial.unreached(faults); len(got) != 1 || c.unreached != got[0] {
			trial.failf(faults, "ranks %v are never reached, not %d", got, c.unreached)
		}
	}
}

// The search that found the smallest cases of TestOptimizedIsNotSafe: fewest
// processes, then fewest dead, then smallest distance.
func TestSmallestFailureOfOptimized(t *testing.T) {
	type failure struct {
		size    protocol.Rank
		dead, d int
	}
	search := func(largest protocol.Rank, distances ...int) (failure, string) {
		for size := protocol.Rank(2); size <= largest; size++ {
			for n := range int(size) {
				for _, d := range distances {
					for _, l := range []protocol.Time{1, 2} {
						for _, shape := range append(shapes(l, 1), topology.KAry(3)) {
							twins := newTwins(t, shape, size, l, 1, "optimized", d, overlapped)
							for dead := range everySetOf(n, 1, size) {
								faults := logp.Faults{Dead: dead}
								if twins.sparing.run(faults).Unreached > twins.plain.run(faults).Unreached {
									return failure{size, n, d}, replay(&twins.sparing.scenario, 0, faults)
								}
							}
						}
					}
				}
			}
		}
		return failure{}, "none"
	}
	check := func(want failure, largest protocol.Rank, distances ...int) {
		got, command := search(largest, distances...)
		t.Logf("d = %v, P ≤ %d: %s", distances, largest, command)
		if got != want {
			t.Errorf("smallest failure with d = %v: %+v, want %+v", distances, got, want)
		}
	}
	check(failure{9, 3, 4}, 9, 1, 2, 3, 4)
	check(failure{9, 4, 3}, 9, 3)
	check(failure{}, pick[protocol.Rank](9, 12, 16), 1, 2)
}
