package broadcast_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// twins are the same broadcast with opportunistic correction and with one that
// leaves messages out.
type twins struct{ plain, sparing *trial }

func newTwins(t *testing.T, shape topology.Shape, size protocol.Rank, l, o protocol.Time, sparing string, d int,
	m mode,
) twins {
	return twins{
		newTrial(t, treeOf(shape, size, l, o, fmt.Sprintf("opportunistic:%d", d), m)),
		newTrial(t, treeOf(shape, size, l, o, fmt.Sprintf("%s:%d", sparing, d), m)),
	}
}

// same runs both and wants the same processes colored, with no more messages.
func (w twins) same(faults logp.Faults) {
	plain, sparing := w.plain.run(faults), w.sparing.run(faults)
	for r := range w.plain.machines {
		if p := w.plain.machines[r].Complete(); p != w.sparing.machines[r].Complete() {
			w.sparing.failf(faults, "rank %d: opportunistic reaches it: %t, %s: %t",
				r, p, w.sparing.scenario.Correction, !p)
		}
	}
	if sparing.Total() > plain.Total() {
		w.sparing.failf(faults, "%d messages, opportunistic %d", sparing.Total(), plain.Total())
	}
}

// Corrected Trees §3.3: "a simple optimization of opportunistic correction that
// preserves non-faulty liveness". Ours does: it colors exactly what opportunistic
// correction colors. So does the paper's for d ≤ 2, where no two messages can
// cross in time; TestOptimizedIsNotSafe shows the smallest cases beyond.
func TestSafeColorsWhatOpportunisticColors(t *testing.T) {
	largest := pick[protocol.Rank](6, 9, 12)
	latencies, overheads := []protocol.Time{1, 2, 5}, []protocol.Time{1, 2, 3}
	for _, rule := range []struct {
		name     string
		farthest int
	}{{"safe", 4}, {"optimized", 2}} {
		for _, l := range latencies {
			for _, o := range overheads {
				t.Run(fmt.Sprintf("%s:%d/L=%d,o=%d", rule.name, rule.farthest, l, o), func(t *testing.T) {
					t.Parallel()
					runs := 0
					for _, shape := range append(shapes(l, o), topology.KAry(3)) {
						for d := 1; d <= rule.farthest; d++ {
							for _, m := range starts {
								for size := protocol.Rank(1); size <= largest; size++ {
									twins := newTwins(t, shape, size, l, o, rule.name, d, m)
									for dead := range everySet(size) {
										twins.same(logp.Faults{Dead: dead})
									}
									runs += twins.plain.runs
								}
							}
						}
					}
					t.Logf("%d pairs of runs", runs)
				})
			}
		}
	}
}

// The same at sizes where the ring does not bend around.
func TestSafeColorsWhatOpportunisticColorsAtSize(t *testing.T) {
	sizes := pick([]protocol.Rank{1 << 10}, []protocol.Rank{1 << 10, 1 << 14}, []protocol.Rank{1 << 10, 1 << 13, 1 << 16})
	runs := pick(2, 5, 50)
	for _, size := range sizes {
		for _, shape := range shapes(2, 1) {
			t.Run(fmt.Sprintf("P=%d/%s", size, shape), func(t *testing.T) {
				t.Parallel()
				for _, rule := range []struct {
					name string
					d    int
				}{{"safe", 1}, {"safe", 2}, {"safe", 4}, {"optimized", 2}} {
					for _, m := range starts {
						twins := newTwins(t, shape, size, 2, 1, rule.name, rule.d, m)
						for run := range runs {
							n := int(size) * (1 + run%10) / 50 // 2% to 20%: many gaps are too wide
							twins.same(logp.Faults{Dead: logp.RandomDead(size, 0, n, uint64(run))})
						}
					}
				}
			})
		}
	}
}

// What each correction costs: messages per process, dissemination included.
// Corrected Trees §4.2: "Optimized opportunistic correction […] requires less
// messages than checked". Safe lies between optimized and opportunistic.
func TestMessagesPerProcess(t *testing.T) {
	size := pick[protocol.Rank](1<<10, 1<<13, 1<<16)
	runs := pick(1, 3, 10)
	rules := []string{
		"optimized:2", "safe:2", "opportunistic:2", "optimized:4", "safe:4", "opportunistic:4", "checked",
		"delayed:8",
	}
	for _, rate := range []float64{0, 0.01, 0.04} {
		table := fmt.Sprintf("P = %d, L = 2, o = 1, overlapped, %g%% dead\n%-10s", size, rate*100, "")
		for _, rule := range rules {
			table += fmt.Sprintf("%17s", rule)
		}
		for _, shape := range shapes(2, 1) {
			table += fmt.Sprintf("\n%-10s", shape)
			mean := make(map[string]float64)
			for _, rule := range rules {
				trial := newTrial(t, treeOf(shape, size, 2, 1, rule, overlapped))
				var sum int64
				for run := range runs {
					sum += trial.dead(logp.RandomDead(size, 0, int(rate*float64(size)), uint64(run))...).Total()
				}
				mean[rule] = float64(sum) / float64(runs) / float64(size)
				table += fmt.Sprintf("%17.3f", mean[rule])
			}
			for _, order := range [][]string{
				{"optimized:2", "safe:2", "opportunistic:2"},
				{"optimized:4", "safe:4", "opportunistic:4"},
			} {
				if !slices.IsSortedFunc(order, func(a, b string) int { return int(1000 * (mean[a] - mean[b])) }) {
					t.Errorf("%s, %g%% dead: not in ascending order: %v of %v", shape, rate*100, order, mean)
				}
			}
		}
		t.Log(table)
	}
}
