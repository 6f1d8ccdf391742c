package broadcast_test

import (
	"fmt"
	"testing"

	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// everySetReached runs a broadcast of each size under every set of dead
// processes and wants every live process reached.
func everySetReached(t *testing.T, s experiments.Scenario, largest protocol.Rank) {
	runs := 0
	for size := protocol.Rank(1); size <= largest; size++ {
		s.Size = size
		trial := newTrial(t, s)
		for dead := range everySet(size) {
			trial.reachesAll(logp.Faults{Dead: dead})
		}
		runs += trial.runs
	}
	t.Logf("%d runs", runs)
}

// networks are the (L, o) that the exhaustive tests go through.
func networks() [][2]protocol.Time {
	return pick([][2]protocol.Time{{2, 1}}, [][2]protocol.Time{{2, 1}}, [][2]protocol.Time{{2, 1}, {1, 1}, {3, 2}})
}

// Corrected Trees §3.1: "This algorithm ensures that all live processes are
// colored, independently of the maximum gap size, as long as no failures occur
// during the correction."
//
// §3.3: "After receiving an early correction, a process still sends tree
// messages to its children"; both ways of going on from there are tried.
func TestCheckedReachesAllForEverySetOfDead(t *testing.T) {
	largest := pick[protocol.Rank](9, 14, 14)
	for _, lo := range networks() {
		for _, shape := range shapes(lo[0], lo[1]) {
			for _, correction := range []string{"checked", "throttled"} {
				for _, m := range modes {
					if !goes(correction, m) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s/L=%d,o=%d", shape, correction, m, lo[0], lo[1]), func(t *testing.T) {
						t.Parallel()
						everySetReached(t, treeOf(shape, 0, lo[0], lo[1], correction, m), largest)
					})
				}
			}
		}
	}
}

// Corrected Trees §3.3 on delayed correction: "the delay does not introduce a
// failure detector, although non-faulty liveness and termination are still
// guaranteed."
func TestDelayedReachesAllForEverySetOfDead(t *testing.T) {
	largest := pick[protocol.Rank](9, 12, 14)
	for _, lo := range networks() {
		for _, shape := range shapes(lo[0], lo[1]) {
			for _, delay := range []int{0, 1, 5, 20} {
				for _, m := range starts {
					correction := fmt.Sprintf("delayed:%d", delay)
					t.Run(fmt.Sprintf("%s/%s/%s/L=%d,o=%d", shape, correction, m, lo[0], lo[1]), func(t *testing.T) {
						t.Parallel()
						everySetReached(t, treeOf(shape, 0, lo[0], lo[1], correction, m), largest)
					})
				}
			}
		}
	}
}

// Corrected Trees §3.3: the first message goes left, and an answer from the
// right is all a process waits for: one correction message per process if
// no process is dead and the delay is long enough.
func TestDelayedCostsOneMessageWithoutFaults(t *testing.T) {
	for _, shape := range shapes(2, 1) {
		for _, size := range []protocol.Rank{2, 3, 10, 100, 1000} {
			trial := newTrial(t, treeOf(shape, size, 2, 1, "delayed:5", synchronized))
			if got := trial.dead().Messages[protocol.Correction]; got != int64(size) {
				trial.failf(logp.Faults{}, "%d correction messages among %d processes", got, size)
			}
		}
	}
}

// Corrected Trees §4.2: "Synchronized checked correction guarantees full
// coloring independent of the number of failures happening before the
// correction phase." As many processes and dead as in §4.3.
func TestCheckedReachesAllAtSize(t *testing.T) {
	size := pick[protocol.Rank](1<<12, 1<<16, 1<<16)
	runs := pick(6, 8, 2_000) // for each of five modes, over all shapes and rates
	rates := []float64{0.0001, 0.001, 0.01, 0.02, 0.04}
	for _, correction := range []string{"checked", "delayed:8"} {
		for _, m := range modes {
			if !goes(correction, m) {
				continue
			}
			all := shapes(2, 1)
			for i, shape := range all {
				t.Run(fmt.Sprintf("%s/%s/%s", correction, m, shape), func(t *testing.T) {
					t.Parallel()
					trial := newTrial(t, treeOf(shape, size, 2, 1, correction, m))
					for run := i; run < runs; run += len(all) {
						n := int(rates[run%len(rates)] * float64(size))
						trial.reachesAll(logp.Faults{Dead: logp.RandomDead(size, 0, n, uint64(run))})
					}
				})
			}
		}
	}
}
