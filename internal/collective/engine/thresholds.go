package engine

import (
	"math"
	"time"

	"github.com/pleach-go/pleach/internal/collective/loggp"
)

// Thresholds select the algorithms of package collective. A selection depends only on
// the collective, the length of its input in bytes, and the number and the placement of the
// tasks, because all tasks must use the same algorithm, and a result must not depend on
// anything else. The length of elements that need a Codec counts as 0, because it is
// unknown before they are encoded.
type Thresholds struct {
	// Halving is the length from which Allreduce uses recursive halving.
	Halving int
	// Chain is the length from which Reduce uses a chain.
	Chain int
	// Tree is the longest that Broadcast sends whole along a tree. Beyond it, most
	// of the data goes along a chain.
	Tree int
	// Segment is the length of the segments in a chain. A process forwards one while
	// it receives the next.
	Segment int
	// Part is the length of the parts in which a long Allreduce is made. Each is a call
	// of its own, so its log is dropped while the next one runs. If zero, there are no parts.
	Part int
	// Bruck is the number of tasks from which Alltoall sends parts of up to BruckPart
	// bytes together.
	Bruck, BruckPart int
	// Levels says which calls use two levels: inside hosts, and between their leaders.
	Levels Levels
}

// Levels selects two-level algorithms. It counts only if there is a [Placement].
type Levels struct {
	Barrier, Broadcast bool
	// Reduce and Allreduce use two levels below these lengths.
	Reduce, Allreduce int
}

// leastChain is the shortest that goes along a chain. Below it, chains and trees take the
// same time on few processors, within what pleach-lab bench collectives can tell apart, and a
// tree has fewer messages.
const leastChain = 512 << 10

// ThresholdsOf derives thresholds from what messages cost.
func ThresholdsOf(m loggp.Model) Thresholds {
	t := Thresholds{Segment: 128 << 10, Part: 4 << 20, Bruck: 9, BruckPart: 512}
	t.Halving = firstLength(1<<10, func(n int) bool { return m.Halving(n) < m.Doubling(n) })
	t.Tree, t.Chain = leastChain, leastChain
	if m.Tasks > 2 { // of two, neither forwards anything
		t.Tree = firstLength(leastChain, func(n int) bool { return m.Chain(n, t.Segment) < m.Tree(n) })
		t.Chain = firstLength(leastChain, func(n int) bool { return m.ReduceChain(n, t.Segment) < m.ReduceTree(n) })
	}
	t.Levels = Levels{
		Barrier:   less(m.BarrierByLevels(), m.Barrier()),
		Broadcast: m.HostsAreFar() && !less(m.Tree(0), m.TreeByLevels(0)), // which is of task 0; other roots gain more
		Reduce:    firstLength(0, func(n int) bool { return !less(m.ReduceByLevels(n), m.Reduce(n, t.Segment)) }),
		Allreduce: firstLength(0, func(n int) bool { return !less(m.AllreduceByLevels(n), m.Allreduce(n)) }),
	}.of(m.Layout)
	return t
}

// less reports whether a time is less than another one, by more than the model's rounding.
func less(a, b time.Duration) bool { return a+a/100 < b }

// of returns what a layout allows. Reductions combine in the order of tasks, which two levels
// keep only if the tasks of each host follow each other.
func (l Levels) of(y loggp.Layout) Levels {
	if !y.TwoLevels() {
		return Levels{}
	}
	if !y.Blocks {
		l.Reduce, l.Allreduce = 0, 0
	}
	return l
}

// Never is a length that no message has.
const Never = math.MaxInt

// firstLength returns the first length, of from and then powers of two, of which a condition
// holds.
func firstLength(from int, holds func(bytes int) bool) int {
	for n := from; n <= 1<<30; n = max(1, 2*n) {
		if holds(n) {
			return n
		}
	}
	return Never
}
