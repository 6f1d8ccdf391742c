package broadcast_test

import (
	"fmt"
	"testing"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Corrected Trees §3.2.1: "With k − 1 failed processes at least every k-th
// process is colored after the dissemination. Thus opportunistic correction with
// k − 1 messages sent per process is guaranteed to color all processes as long as
// there are less than k failures." §4.2: "in a k-ary tree opportunistic
// correction with d ≥ k is guaranteed to tolerate at least up to k − 1 failures."
//
// Both hold, incomplete trees included, and neither is the exact bound per
// side: as a gap is closed from both of its ends, d ≥ (k − 1)/2 is enough, so
// d = ⌊k/2⌋. (k − 1 messages, sent to both sides in turn, are just that many.)
func TestOpportunisticOnKAryTreeSurvivesKMinus1(t *testing.T) {
	largest := map[int]protocol.Rank{ // by k
		2: pick[protocol.Rank](40, 200, 300),
		3: pick[protocol.Rank](20, 45, 120),
		4: pick[protocol.Rank](14, 24, 45),
		5: pick[protocol.Rank](12, 18, 27),
	}
	for k, largest := range largest {
		for _, m := range starts {
			for _, d := range []int{k / 2, k - 1, k} {
				t.Run(fmt.Sprintf("k=%d/d=%d/%s", k, d, m), func(t *testing.T) {
					t.Parallel()
					runs := 0
					for size := protocol.Rank(1); size <= largest; size++ {
						trial := newTrial(t, treeOf(topology.KAry(k), size, 2, 1, fmt.Sprintf("opportunistic:%d", d), m))
						for failed := range k {
							for dead := range everySetOf(failed, 1, size) {
								trial.reachesAll(logp.Faults{Dead: dead})
							}
						}
						runs += trial.runs
					}
					t.Logf("%d runs", runs)
				})
			}
		}
	}
}

// One message less on each side is too little: the bound of
// TestOpportunisticOnKAryTreeSurvivesKMinus1 is exact. With a synchronized start
// three dead children of the root leave 5, 6 and 7 uncolored, and no process sends
// as far as 6. With an overlapped one, 5 and 7 would pass it on; so they are
// dead, and 6's parent.
func TestOpportunisticBoundIsExact(t *testing.T) {
	for _, c := range []struct {
		mode mode
		dead []protocol.Rank
	}{
		{synchronized, []protocol.Rank{1, 2, 3}},
		{overlapped, []protocol.Rank{2, 5, 7}},
	} {
		trial := newTrial(t, treeOf(topology.KAry(4), 16, 2, 1, "opportunistic:1", c.mode))
		faults := logp.Faults{Dead: c.dead}
		trial.run(faults)
		if got := trial.unreached(faults); len(got) == 0 || got[0] != 6 {
			trial.failf(faults, "unreached are %v, not 6", got)
		}
	}
}

// Corrected Trees §3.2.1: "No such guarantee can be given for k or more
// failures, because in the (very unlikely) worst case all children of the root
// process can fail."
func TestOpportunisticOnKAryTreeFailsWithKDead(t *testing.T) {
	for k := range protocol.Rank(5) {
		if k < 2 {
			continue
		}
		trial := newTrial(t, treeOf(topology.KAry(int(k)), 100, 2, 1, fmt.Sprintf("opportunistic:%d", k), synchronized))
		var faults logp.Faults
		for child := protocol.Rank(1); child <= k; child++ {
			faults.Dead = append(faults.Dead, child)
		}
		if trial.run(faults).Unreached == 0 {
			trial.failf(faults, "all are reached, although the root has no live child")
		}
	}
}
