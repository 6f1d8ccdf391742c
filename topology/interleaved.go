package topology

import (
	"sort"

	"github.com/pleach-go/pleach/protocol"
)

// interleaved numbers the processes of a timetable in the order of their birth,
// those of one slot in the order of their parents (Corrected Trees §3.2.2). The
// next rank thus goes to the sender whose message is received first, ties to the
// lowest rank. This greedy choice makes the fastest tree for the given step and
// delay.
//
// Rank r ≥ 1 is born in slot t, B(t) ≤ r < B(t+1), and colored at c = t+b. The
// root is colored at 0. Rank r sends at c, c+a, c+2a, …. The other processes that
// send at these times are colored at times congruent to c modulo a, and S(c−a) of
// them are colored before c. At each of its sends r is therefore in line behind
//
//	S(c−a) + r − B(c−b)
//
// others (the root behind none), and its m-th child is B(c+m·a) plus that.
//
// If a divides b, all processes send in step with the root, S(c−a) = B(c−b), and
// the child is r + B(c+m·a): Equation (2) and the optimal tree as printed. If a
// does not divide b, the printed formula counts senders that are out of step. The
// expression above is right for both. The tree is then the fastest, but violates
// Definition 1: ring neighbors can descend from one child of the root, and one
// failure can leave a gap of a instead of 1 (never more in any case tried; not
// proven).
type interleaved struct{ *timetable }

func (t interleaved) Parent(r protocol.Rank) (protocol.Rank, int) {
	if r == 0 {
		return protocol.NoRank, 0
	}
	slot := t.slot(r)
	line := r - t.born[slot]
	// The sender behind line others was colored at the last c ≡ slot (mod a)
	// before which at most line processes were.
	index := sort.Search(int(slot/t.step), func(i int) bool {
		return t.births(slot-protocol.Time(i+1)*t.step) <= line
	})
	colored := slot - protocol.Time(index)*t.step
	if colored == 0 {
		return 0, index
	}
	return t.born[colored-t.delay] + line - t.births(colored-t.step), index
}

func (t interleaved) Child(r protocol.Rank, i int) (protocol.Rank, bool) {
	if i < 0 || i >= len(t.born) {
		return protocol.NoRank, false
	}
	colored, line := protocol.Time(0), protocol.Rank(0)
	if r > 0 {
		slot := t.slot(r)
		colored, line = slot+t.delay, r-t.born[slot]
	}
	slot := colored + protocol.Time(i)*t.step
	if slot >= t.end() {
		return protocol.NoRank, false
	}
	child := t.born[slot] + t.births(colored-t.step) + line
	return child, child < t.size
}

func (t interleaved) Depth(r protocol.Rank) int {
	depth := 0
	for ; r != 0; depth++ {
		r, _ = t.Parent(r)
	}
	return depth
}
