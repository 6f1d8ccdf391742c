package broadcast_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Corrected Gossip §IV-B3: "Binary (dissemination) graphs (BIGs) […] can
// tolerate up to log2 P − 1 failures using static routing."
func TestBinomialGraphSurvivesLogMinus1(t *testing.T) {
	for _, size := range pick([]protocol.Rank{2, 4, 8, 16}, []protocol.Rank{2, 4, 8, 16, 32},
		[]protocol.Rank{2, 4, 8, 16, 32, 64}) {
		trial := newTrial(t, experiments.Scenario{Dissemination: "big", Size: size, L: 2, O: 1})
		neighbors := bits.TrailingZeros(uint(size)) // log2 P
		for failed := range neighbors {
			for dead := range everySetOf(failed, 1, size) {
				trial.reachesAll(logp.Faults{Dead: dead})
			}
		}
		var all logp.Faults // one more: all the root sends to
		for d := protocol.Rank(1); d < size; d *= 2 {
			all.Dead = append(all.Dead, d)
		}
		if live := trial.run(all).Live; live > 1 && trial.result.Unreached != live-1 {
			trial.failf(all, "somebody is reached although all neighbors of the root are dead")
		}
		t.Logf("P = %d: %d runs", size, trial.runs)
	}
}

// Corrected Gossip §IV-B2: "This algorithm supports an arbitrary number of
// failures by using a dynamic tree […]. If a failed node is detected and the
// message cannot be delivered, a NACK message is immediately propagated to the
// root which in turn re-starts the whole operation with a modified tree." So the
// root must live; any other process may die at any time.
func TestRestartingSurvivesEveryDeath(t *testing.T) {
	largest := []protocol.Rank{ // by the number of deaths on the way
		0: pick[protocol.Rank](10, 12, 14),
		1: pick[protocol.Rank](7, 9, 11),
		2: pick[protocol.Rank](4, 5, 7),
		3: pick[protocol.Rank](3, 4, 5),
	}
	for _, lo := range [][2]protocol.Time{{2, 1}, {1, 2}} {
		for n, largest := range largest {
			t.Run(fmt.Sprintf("%d die/L=%d,o=%d", n, lo[0], lo[1]), func(t *testing.T) {
				t.Parallel()
				runs := 0
				for size := protocol.Rank(2); size <= largest; size++ {
					trial := newTrial(t, experiments.Scenario{Dissemination: "bfb", Size: size, L: lo[0], O: lo[1]})
					trial.spared = func(r protocol.Rank) bool { return r == 0 }
					for dead := range everySet(size) {
						trial.everyDeath(n, logp.Faults{Dead: dead})
					}
					runs += trial.runs
				}
				t.Logf("%d runs", runs)
			})
		}
	}
}

// Corrected Trees §4.1: "a process sends an acknowledgment to the parent after
// receiving all acknowledgments from the immediate children": one for every
// process but the root, and the last comes to the root.
func TestEverybodyAcknowledgesOnce(t *testing.T) {
	for _, shape := range shapes(2, 1) {
		for size := protocol.Rank(1); size <= 70; size++ {
			trial := newTrial(t, experiments.Scenario{Dissemination: "ack", Shape: shape, Size: size, L: 2, O: 1})
			last := protocol.Rank(0)
			trial.sim.Trace = func(e logp.Event) {
				if e.What == logp.Received {
					last = e.Rank
				}
			}
			if acks := trial.dead().Messages[protocol.Acknowledgment]; acks != int64(size)-1 || last != 0 {
				trial.failf(logp.Faults{}, "%d acknowledgments, the last received by %d", acks, last)
			}
		}
	}
}

// Corrected Trees §2.1: "Within a fault-agnostic setup a failure of any non-leaf
// process in the tree results in all its descendants remaining uncolored."
func TestTreeAloneLosesDescendants(t *testing.T) {
	const size = 50
	for _, shape := range shapes(2, 1) {
		tree, err := topology.New(shape, topology.Interleaved, size, 0)
		if err != nil {
			t.Fatal(err)
		}
		trial := newTrial(t, treeOf(shape, size, 2, 1, "none", overlapped))
		for dead := protocol.Rank(1); dead < size; dead++ {
			descendants := protocol.Rank(-1) // not the dead one itself
			for range topology.Subtree(tree, dead) {
				descendants++
			}
			if got := trial.dead(dead).Unreached; got != descendants {
				trial.failf(logp.Faults{Dead: []protocol.Rank{dead}}, "%d unreached, not its %d descendants", got, descendants)
			}
		}
	}
}
