package logp_test

import (
	"math/rand/v2"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// A lineage says of every rank what the tree says, and when it is through. The
// optimal trees whose o does not divide L are those with a structure of their
// own.
func TestLineageIsTheTree(t *testing.T) {
	check := func(shape topology.Shape, size, root protocol.Rank, l, o protocol.Time) {
		t.Helper()
		tree, err := topology.New(shape, topology.Interleaved, size, root)
		if err != nil {
			t.Fatal(err)
		}
		lineage, err := logp.NewLineage(tree, logp.Params{L: l, O: o})
		if err != nil {
			t.Fatal(err)
		}
		if err := lineage.Check(); err != nil {
			t.Fatalf("%s P=%d root=%d L=%d o=%d: %v", shape, size, root, l, o, err)
		}
		if got, want := lineage.FinishTime(), topology.FinishTime(tree, l, o); got != want {
			t.Fatalf("%s P=%d root=%d L=%d o=%d: finished at %d, not %d", shape, size, root, l, o, got, want)
		}
	}
	for size := protocol.Rank(1); size <= 130; size++ {
		for l := protocol.Time(0); l <= 7; l++ {
			for o := protocol.Time(1); o <= 5; o++ {
				check(topology.Optimal(l, o), size, 0, l, o)
			}
		}
		for _, shape := range append(shapes(2, 1), topology.KAry(1), topology.KAry(7), topology.Lame(5)) {
			check(shape, size, size/2, 3, 2)
		}
	}
	sizes := []protocol.Rank{5000, 1 << 14, 1<<17 + 77}
	if testutil.RaceEnabled {
		sizes = sizes[:1]
	}
	for _, size := range sizes {
		for _, c := range []struct{ l, o protocol.Time }{{2, 1}, {1, 2}, {3, 2}, {5, 3}, {7, 4}, {1, 7}, {100, 7}} {
			for _, shape := range append(shapes(c.l, c.o), topology.KAry(300), topology.Lame(40)) {
				check(shape, size, 0, c.l, c.o)
			}
		}
	}
}

// The dead of a seed are those that Floyd's sampling draws with a list of those
// it has drawn: they must never change, or recorded runs would.
func TestDeadSetDraws(t *testing.T) {
	floyd := func(size, root protocol.Rank, n int, seed uint64) map[protocol.Rank]bool {
		rng := rand.New(rand.NewPCG(seed, 0xdead))
		drawn := map[int64]bool{}
		for i := int64(size) - 1 - int64(n); i < int64(size)-1; i++ {
			r := rng.Int64N(i + 1)
			if drawn[r] {
				r = i
			}
			drawn[r] = true
		}
		dead := map[protocol.Rank]bool{}
		for r := range drawn {
			if r >= int64(root) {
				r++
			}
			dead[protocol.Rank(r)] = true
		}
		return dead
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		size := protocol.Rank(2 + rng.IntN(2000))
		root, n, seed := protocol.Rank(rng.IntN(int(size))), rng.IntN(int(size)), rng.Uint64()
		want := floyd(size, root, n, seed)
		set := logp.NewDeadSet(size)
		if err := set.Add(root); err != nil { // forgotten by the draw
			t.Fatal(err)
		}
		set.Draw(root, n, seed)
		if set.Len() != n || len(want) != n {
			t.Fatalf("%d of %d are drawn, not %d", set.Len(), size, n)
		}
		for _, r := range set.Ranks() {
			if !want[r] {
				t.Fatalf("Draw(%d, %d, %d) of %d: rank %d", root, n, seed, size, r)
			}
		}
		gap := topology.Ring{Size: size}.MaxGap(func(r protocol.Rank) bool { return want[r] })
		if got := set.LongestZeroRun(); got != gap {
			t.Fatalf("Draw(%d, %d, %d) of %d: the longest run of the living is %d, not %d", root, n, seed, size, got, gap)
		}
	}
}
