package topology_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// checkInterleaved checks a tree with root 0 against Corrected Trees, Definition
// 1: "A tree Tf is interleaved iff for any of its subtrees Ts and a ring Rs
// comprising the nodes of Ts, any adjacent pair of distinct nodes in Rs either
// descend from each other or their only common ancestor is root(Ts)."
//
// It puts ranks on the rings of all their ancestors in ascending order, each
// beside the last one there. The pair that closes a ring has root(Ts), the
// lowest rank of its subtree, as one of the two.
func checkInterleaved(t topology.Tree) error {
	parents := make([]protocol.Rank, t.Size())
	type seat struct{ rank, branch protocol.Rank }
	last := make([]seat, t.Size()) // by root(Ts): the last rank of Rs so far
	for r := range t.Size() {
		parents[r], _ = t.Parent(r)
		last[r] = seat{rank: r, branch: r}
		branch := r // the child of root(Ts) that r descends from
		for root := parents[r]; root != protocol.NoRank; root = parents[root] {
			left := last[root]
			if left.branch == branch && !descends(parents, r, left.rank) {
				return fmt.Errorf("%d and %d are neighbors below %d, and both descend from %d", left.rank, r, root, branch)
			}
			last[root] = seat{rank: r, branch: branch}
			branch = root
		}
	}
	return nil
}

// descends reports whether r descends from ancestor. The reverse cannot be
// where r is the higher rank, as parents come before their children.
func descends(parents []protocol.Rank, r, ancestor protocol.Rank) bool {
	for r > ancestor {
		r = parents[r]
	}
	return r == ancestor
}

// firstNotInterleaved returns the smallest size up to 512 for which a tree
// violates Definition 1, or 0.
func firstNotInterleaved(t *testing.T, shape topology.Shape, order topology.Order) protocol.Rank {
	stride := protocol.Rank(1)
	if testutil.RaceEnabled {
		stride = 37
	}
	for size := protocol.Rank(1); size <= 512; size += stride {
		if checkInterleaved(mustNew(t, shape, order, size, 0)) != nil {
			return size
		}
	}
	return 0
}

// Lemma 1: "A tree constructed by Equation (2) is interleaved", and k-ary and
// optimal trees are where the overhead divides the latency.
func TestInterleaved(t *testing.T) {
	for _, shape := range inStep {
		if size := firstNotInterleaved(t, shape, topology.Interleaved); size != 0 {
			t.Errorf("%#v with %d ranks: %v", shape, size,
				checkInterleaved(mustNew(t, shape, topology.Interleaved, size, 0)))
		}
	}
}

// An optimal tree whose overhead does not divide the latency is not interleaved
// in the sense of Definition 1 from some size on: processes of one branch are in
// step with each other and out of step with the rest, so two of them can give
// birth in a row. It stays close to it, see TestOneFailure.
func TestOutOfStepIsNotInterleaved(t *testing.T) {
	for _, test := range []struct {
		l, o  protocol.Time
		first protocol.Rank
	}{
		{1, 2, 15}, {3, 2, 21}, {5, 2, 28}, {1, 3, 20}, {2, 3, 15}, {4, 3, 27}, {5, 3, 21}, {1, 4, 20}, {6, 4, 21},
	} {
		for _, size := range []protocol.Rank{test.first - 1, test.first, 512} {
			err := checkInterleaved(mustNew(t, topology.Optimal(test.l, test.o), topology.Interleaved, size, 0))
			if (err != nil) != (size >= test.first) {
				t.Errorf("L=%d o=%d with %d ranks: %v", test.l, test.o, size, err)
			}
		}
	}
}

// In-order numbering is what interleaving improves on (§3.2).
func TestInOrderIsNotInterleaved(t *testing.T) {
	for _, shape := range slices.Concat(inStep, outOfStep) {
		if checkInterleaved(mustNew(t, shape, topology.InOrder, 64, 0)) == nil {
			t.Errorf("in-order %#v is interleaved", shape)
		}
	}
}

// One dead process costs an interleaved tree gaps of one rank; out of step, in
// these cases, gaps of up to o/gcd(o, L) ranks; an in-order tree its whole subtree.
func TestOneFailure(t *testing.T) {
	for _, shape := range inStep {
		if gap := worstGap(mustNew(t, shape, topology.Interleaved, 512, 0)); gap != 1 {
			t.Errorf("%#v: gap of %d", shape, gap)
		}
	}
	for _, test := range []struct {
		l, o protocol.Time
		want protocol.Rank
	}{{1, 2, 2}, {3, 2, 2}, {1, 3, 3}, {5, 3, 3}, {1, 4, 4}, {6, 4, 2}, {4, 6, 3}} {
		if gap := worstGap(mustNew(t, topology.Optimal(test.l, test.o), topology.Interleaved, 512, 0)); gap != test.want {
			t.Errorf("L=%d o=%d: gap of %d, want %d", test.l, test.o, gap, test.want)
		}
	}
	if gap := worstGap(mustNew(t, topology.Binomial(), topology.InOrder, 512, 0)); gap != 256 {
		t.Errorf("in-order binomial: gap of %d, want 256", gap)
	}
}

// worstGap returns the longest gap that the death of one process can leave.
func worstGap(t topology.Tree) protocol.Rank {
	var worst protocol.Rank
	ring := topology.Ring{Size: t.Size()}
	for dead := protocol.Rank(1); dead < t.Size(); dead++ {
		lost := map[protocol.Rank]bool{}
		for r := range topology.Subtree(t, dead) {
			lost[r] = true
		}
		worst = max(worst, ring.MaxGap(func(r protocol.Rank) bool { return !lost[r] }))
	}
	return worst
}
