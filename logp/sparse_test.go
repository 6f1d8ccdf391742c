package logp_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// twin is one broadcast for both engines.
type twin struct {
	name   string
	root   protocol.Rank
	size   protocol.Rank
	events func(dead []protocol.Rank) (logp.Result, error)
	sparse *logp.Sparse
}

// sparseRules are the corrections that Sparse knows.
func sparseRules(distance protocol.Rank) map[logp.SparseRule]broadcast.Correction {
	return map[logp.SparseRule]broadcast.Correction{
		logp.SparseChecked:       broadcast.Checked{},
		logp.SparseOpportunistic: broadcast.Opportunistic{Distance: distance},
		logp.SparseOptimized:     broadcast.Optimized{Distance: distance},
		logp.SparseSafe:          broadcast.Safe{Distance: distance},
	}
}

func newTwin(t testing.TB, shape topology.Shape, size, root protocol.Rank, params logp.Params, kind logp.SparseRule,
	distance protocol.Rank,
) *twin {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	tree, err := topology.New(shape, topology.Interleaved, size, root)
	must(err)
	correction := sparseRules(distance)[kind]
	plan, err := broadcast.NewPlan(broadcast.Config{
		Size: size, Root: root, Dissemination: broadcast.Tree{Tree: tree}, Correction: correction,
		Start: broadcast.Synchronized, At: topology.FinishTime(tree, params.L, params.O),
	})
	must(err)
	sim, err := logp.NewSimulator[broadcast.Body](params)
	must(err)
	group := plan.Group()
	sim.Initiators = group.Initiators()
	lineage, err := logp.NewLineage(tree, params)
	must(err)
	sparse, err := logp.NewSparse(params, lineage, kind, distance)
	must(err)
	return &twin{
		name: fmt.Sprintf("%s P=%d root=%d %+v %s", shape, size, root, params, correction),
		root: root, size: size, sparse: sparse,
		events: func(dead []protocol.Rank) (logp.Result, error) {
			return sim.Run(group.Machines(0), logp.Faults{Dead: dead})
		},
	}
}

// compare runs both engines and reports whether they show the same.
func (w *twin) compare(dead []protocol.Rank) error {
	want, err := w.events(dead)
	if err != nil {
		return err
	}
	set := logp.NewDeadSet(w.size)
	if err := set.Add(dead...); err != nil {
		return err
	}
	got, err := w.sparse.Run(set)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s, dead %v:\nsparse %+v\nevents %+v", w.name, dead, got, want)
	}
	return nil
}

// randomTwin draws a broadcast of up to 300 processes.
func randomTwin(t testing.TB, rng *rand.Rand) *twin {
	pick := func(n int) int { return rng.IntN(n) }
	params := logp.Params{L: protocol.Time(pick(9)), O: protocol.Time(1 + pick(4)), FreeReceive: pick(8) == 0}
	if pick(16) == 0 {
		params.L = protocol.Time(pick(300))
	}
	distance := protocol.Rank(1 + pick(12))
	if pick(16) == 0 {
		distance = protocol.Rank(1 + pick(400))
	}
	shapes := append(shapes(params.L, params.O),
		topology.KAry(1), topology.KAry(3), topology.KAry(17), topology.Lame(7),
		topology.Optimal(protocol.Time(pick(12)), protocol.Time(1+pick(5))))
	size := protocol.Rank(1 + pick(300))
	if pick(3) == 0 {
		size = protocol.Rank(1 + pick(24))
	}
	var root protocol.Rank
	if pick(3) == 0 {
		root = protocol.Rank(pick(int(size)))
	}
	kind := logp.SparseRule(pick(4))
	if pick(3) == 0 {
		kind = logp.SparseChecked
	}
	return newTwin(t, shapes[pick(len(shapes))], size, root, params, kind, distance)
}

// randomFaults draws dead processes of many kinds: none, few, many, neighbors,
// the root's children, the root.
func (w *twin) randomFaults(rng *rand.Rand) []protocol.Rank {
	n := int(w.size)
	ring := topology.Ring{Size: w.size}
	var dead []protocol.Rank
	if w.size == 1 {
		return nil
	}
	switch rng.IntN(8) {
	case 0:
		return nil
	case 1, 2:
		dead = logp.RandomDead(w.size, w.root, 1+rng.IntN(3), rng.Uint64())
	case 3:
		dead = logp.RandomDead(w.size, w.root, rng.IntN(n), rng.Uint64())
	case 4: // neighbors
		at := protocol.Rank(rng.IntN(n))
		for i := range rng.IntN(min(n, 30)) {
			dead = append(dead, ring.Right(at, protocol.Rank(i)))
		}
	case 5: // beside the root
		for i := range 1 + rng.IntN(min(n-1, 9)) {
			dead = append(dead, ring.Right(w.root, protocol.Rank(i+1)))
		}
	default:
		dead = logp.RandomDead(w.size, w.root, 1+n*rng.IntN(12)/100, rng.Uint64())
	}
	if rng.IntN(20) != 0 { // the root lives
		kept := dead[:0]
		for _, r := range dead {
			if r != w.root {
				kept = append(kept, r)
			}
		}
		dead = kept
	}
	return dead
}

// randomly runs a check for many seeds. A failure names its seed, and
// PLEACH_SEED runs that one alone.
func randomly(t *testing.T, cases int, check func(rng *rand.Rand) error) {
	t.Helper()
	first := testutil.Seed.Or(0)
	if testutil.Seed.On() {
		cases = 1
	}
	_, err := logp.Repeat(t.Context(), cases, func() (func(int) (struct{}, error), error) {
		return func(run int) (struct{}, error) {
			if err := check(rand.New(rand.NewPCG(uint64(first+run), 5))); err != nil {
				return struct{}{}, fmt.Errorf("PLEACH_SEED=%d go test ./logp -run %s: %w", first+run, t.Name(), err)
			}
			return struct{}{}, nil
		}, nil
	}, nil)
	if err != nil {
		t.Error(err)
	}
}

// The two engines show the same, in every figure of every run: 10,000 of them,
// 100,000 in full.
func TestSparseShowsWhatEventsShow(t *testing.T) {
	cases := 1_000
	if testutil.RaceEnabled {
		cases = 100
	}
	if testutil.Full.On() {
		cases = 10_000
	}
	randomly(t, cases, func(rng *rand.Rand) error {
		w := randomTwin(t, rng)
		for range 10 {
			if err := w.compare(w.randomFaults(rng)); err != nil {
				return err
			}
		}
		return nil
	})
}

// All sets of dead among few processes: wherever the ring is so small that ways
// around it meet.
func TestSparseShowsWhatEventsShowOnSmallRings(t *testing.T) {
	most := protocol.Rank(10)
	if testutil.RaceEnabled {
		most = 7
	}
	for size := protocol.Rank(1); size <= most; size++ {
		for _, params := range []logp.Params{{L: 0, O: 1}, {L: 1, O: 1}, {L: 2, O: 1}, {L: 3, O: 2}, {L: 5, O: 1}} {
			for kind := logp.SparseChecked; kind <= logp.SparseSafe; kind++ {
				for distance := protocol.Rank(1); distance <= 4; distance++ {
					w := newTwin(t, topology.Binomial(), size, size/3, params, kind, distance)
					for set := range 1 << size {
						var dead []protocol.Rank
						for r := range size {
							if set>>r&1 != 0 {
								dead = append(dead, r)
							}
						}
						if err := w.compare(dead); err != nil {
							t.Fatal(err)
						}
					}
					if kind == logp.SparseChecked {
						break // it has no distance
					}
				}
			}
		}
	}
}

// A ring that is cut into pieces shows the same as a whole one, whether the
// pieces overlap far enough at once or only after they have been made larger.
func TestSparseShowsWhatEventsShowInPieces(t *testing.T) {
	cases := 200
	if testutil.RaceEnabled {
		cases = 20
	}
	if testutil.Full.On() {
		cases = 2_000
	}
	var cut, grown atomic.Int64
	randomly(t, cases, func(rng *rand.Rand) error {
		params := logp.Params{L: protocol.Time(rng.IntN(7)), O: protocol.Time(1 + rng.IntN(3))}
		if rng.IntN(8) == 0 {
			params.L = protocol.Time(rng.IntN(80))
		}
		distance := protocol.Rank(1 + rng.IntN(9))
		if rng.IntN(4) == 0 {
			distance = protocol.Rank(1 + rng.IntN(300))
		}
		shapes := shapes(params.L, params.O)
		size := protocol.Rank(1000 + rng.IntN(3000))
		w := newTwin(t, shapes[rng.IntN(len(shapes))], size, protocol.Rank(rng.IntN(int(size))), params,
			logp.SparseRule(rng.IntN(4)), distance)
		w.sparse.CutInto(64*(1+rng.IntN(4)), 64*(1+rng.IntN(3)))
		for range 4 {
			if err := w.compare(w.randomFaults(rng)); err != nil {
				return err
			}
			if w.sparse.Pieces() > 1 {
				cut.Add(1)
			} else {
				grown.Add(1)
			}
		}
		return nil
	})
	if !testutil.Seed.On() && (cut.Load() == 0 || grown.Load() == 0) {
		t.Errorf("%d runs in pieces, %d on the whole ring: both should occur", cut.Load(), grown.Load())
	}
}

// Large groups, as they are cut by default.
func TestSparseShowsWhatEventsShowOnLargeRings(t *testing.T) {
	size, seeds := protocol.Rank(1<<16), 1
	if testutil.RaceEnabled {
		size = 1 << 13
	}
	if testutil.Full.On() {
		size, seeds = 1<<20, 3
	}
	params := logp.Params{L: 2, O: 1}
	for _, shape := range []topology.Shape{
		topology.Binomial(), topology.KAry(4), topology.Lame(2),
		topology.Optimal(2, 1),
	} {
		for kind := logp.SparseChecked; kind <= logp.SparseSafe; kind++ {
			w := newTwin(t, shape, size, 0, params, kind, 4)
			for seed := range seeds {
				for _, share := range []int{10_000, 100, 25} {
					if err := w.compare(logp.RandomDead(size, 0, int(size)/share, uint64(seed))); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

func TestSparseRefuses(t *testing.T) {
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, 1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	params := logp.Params{L: 2, O: 1}
	lineage, err := logp.NewLineage(tree, params)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		params   logp.Params
		kind     logp.SparseRule
		distance protocol.Rank
	}{
		{params, logp.SparseSafe + 1, 1},
		{params, logp.SparseSafe, 0},
		{params, logp.SparseOpportunistic, 1 << 17},
		{logp.Params{L: 3, O: 1}, logp.SparseChecked, 0},
	} {
		if _, err := logp.NewSparse(c.params, lineage, c.kind, c.distance); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	sparse, err := logp.NewSparse(params, lineage, logp.SparseChecked, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sparse.Run(logp.NewDeadSet(1 << 10)); err == nil {
		t.Error("the dead of another group are taken")
	}
	if err := logp.NewDeadSet(8).Add(8); err == nil {
		t.Error("rank 8 of 8 is taken for dead")
	}
	chain, err := topology.New(topology.KAry(1), topology.Interleaved, 1<<21, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := logp.NewLineage(chain, params); err == nil {
		t.Error("a chain of two million is taken")
	}
}
