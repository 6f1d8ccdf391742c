package logp_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// shapes are the trees of the paper's evaluation, and one more Lamé tree.
func shapes(l, o protocol.Time) []topology.Shape {
	return []topology.Shape{
		topology.Binomial(), topology.KAry(2), topology.KAry(4),
		topology.Lame(2), topology.Lame(3), topology.Optimal(l, o),
	}
}

// checkedBroadcast is a tree with synchronized checked correction, ready to be
// run many times.
type checkedBroadcast struct {
	group *broadcast.Group
	sim   *logp.Simulator[broadcast.Body]
}

func newCheckedBroadcast(t testing.TB, shape topology.Shape, size protocol.Rank, l, o protocol.Time) *checkedBroadcast {
	t.Helper()
	tree, err := topology.New(shape, topology.Interleaved, size, 0)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := broadcast.NewPlan(broadcast.Config{
		Size: size, Dissemination: broadcast.Tree{Tree: tree}, Correction: broadcast.Checked{},
		Start: broadcast.Synchronized, At: topology.FinishTime(tree, l, o),
	})
	if err != nil {
		t.Fatal(err)
	}
	sim, err := logp.NewSimulator[broadcast.Body](logp.Params{L: l, O: o})
	if err != nil {
		t.Fatal(err)
	}
	b := &checkedBroadcast{group: plan.Group(), sim: sim}
	sim.Initiators = b.group.Initiators()
	return b
}

func (b *checkedBroadcast) run(t testing.TB, dead []protocol.Rank) logp.Result {
	t.Helper()
	r, err := b.sim.Run(b.group.Machines(0), logp.Faults{Dead: dead})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Corrected Trees §4.2, Lemma 2: "In the failure-free case the quiescence
// latency of synchronized checked correction L_FF_SCC is 4o + L + ⌊L/o⌋·o", and
// Corollary 1: "the number of messages sent per process in synchronized checked
// correction M_SCC is 3 + ⌊L/o⌋". Both hold with ⌈⌉ for every L and o; see
// logp.CheckedTime for why ⌊⌋ is wrong where o does not divide L.
func TestLemma2AndCorollary1(t *testing.T) {
	const size = 96
	for l := protocol.Time(1); l <= 12; l++ {
		for o := protocol.Time(1); o <= 4; o++ {
			for _, shape := range shapes(l, o) {
				r := newCheckedBroadcast(t, shape, size, l, o).run(t, nil)
				if r.CorrectionTime != logp.CheckedTime(l, o) {
					t.Errorf("%s L=%d o=%d: correction takes %d, not %d", shape, l, o, r.CorrectionTime, logp.CheckedTime(l, o))
				}
				if got, want := r.Messages[protocol.Correction], size*logp.CheckedMessages(l, o); got != want {
					t.Errorf("%s L=%d o=%d: %d correction messages, not %d", shape, l, o, got, want)
				}
				printed := 4*o + l + l/o*o
				if (l%o == 0) != (printed == logp.CheckedTime(l, o)) {
					t.Errorf("L=%d o=%d: the printed formula gives %d, the simulation %d", l, o, printed, r.CorrectionTime)
				}
			}
		}
	}
}

// Corrected Trees §4.1: "Independent of tree type, checked correction lasts 8
// time steps", and "since there are no faulty processes, each of them sends 5
// correction messages" (L = 2, o = 1).
func TestFaultFreeCorrectionTakesEightStepsAndFiveMessages(t *testing.T) {
	for _, size := range []protocol.Rank{64, 1000, 65536} {
		if testutil.RaceEnabled && size > 1000 {
			continue
		}
		for _, shape := range shapes(2, 1) {
			r := newCheckedBroadcast(t, shape, size, 2, 1).run(t, nil)
			if r.CorrectionTime != 8 || r.Messages[protocol.Correction] != 5*int64(size) || r.Unreached != 0 {
				t.Errorf("%s P=%d: %+v", shape, size, r)
			}
		}
	}
}

// Corrected Trees §4.2, Lemma 3: "Given the presence of failed processes and
// g_max (assuming P ≫ g_max), the quiescence latency of a synchronized checked
// correction L_SCC is bounded as follows: L_FF + g_max·o ≤ L_SCC ≤ L_FF +
// (2·g_max + 1)·o."
func TestLemma3(t *testing.T) {
	runs := 1_200
	if testutil.Full.On() {
		runs = 120_000
	}
	cases := []struct{ l, o protocol.Time }{{2, 1}, {1, 1}, {5, 1}, {4, 2}, {3, 3}, {6, 3}, {3, 2}, {1, 2}, {5, 3}}
	for _, c := range cases {
		for _, shape := range shapes(c.l, c.o) {
			t.Run(fmt.Sprintf("%s L=%d o=%d", shape, c.l, c.o), func(t *testing.T) {
				t.Parallel()
				const size = 2048
				b := newCheckedBroadcast(t, shape, size, c.l, c.o)
				rng := rand.New(rand.NewPCG(1, uint64(c.l*100+c.o)))
				for range runs / (len(cases) * 6) {
					seed, n := rng.Uint64(), 1+rng.IntN(size/20)
					r := b.run(t, logp.RandomDead(size, 0, n, seed))
					if r.Unreached != 0 {
						t.Fatalf("%d live processes unreached: RandomDead(%d, 0, %d, %d)", r.Unreached, size, n, seed)
					}
					if r.MaxGap > size/8 {
						continue // not P ≫ g_max: the root's children are all dead
					}
					low, high := logp.CheckedBounds(r.MaxGap, c.l, c.o)
					if r.CorrectionTime < low || r.CorrectionTime > high {
						t.Fatalf("gap %d: correction takes %d, not %d to %d: RandomDead(%d, 0, %d, %d)",
							r.MaxGap, r.CorrectionTime, low, high, size, n, seed)
					}
				}
			})
		}
	}
}
