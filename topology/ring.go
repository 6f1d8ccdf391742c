package topology

import (
	"iter"

	"github.com/pleach-go/pleach/protocol"
)

// Ring is the circle of ranks along which correction closes gaps. Right is
// towards higher ranks; rank 0 follows the last (Corrected Trees §3.1).
type Ring struct {
	// Size is the number of ranks on the ring.
	Size protocol.Rank
}

// Right returns the rank at distance d to the right of r.
func (g Ring) Right(r, d protocol.Rank) protocol.Rank { return g.wrap(r + d) }

// Left returns the rank at distance d to the left of r.
func (g Ring) Left(r, d protocol.Rank) protocol.Rank { return g.wrap(r - d) }

// DistanceRight returns the distance from one rank rightwards to another.
func (g Ring) DistanceRight(from, to protocol.Rank) protocol.Rank { return g.wrap(to - from) }

// DistanceLeft returns the distance from one rank leftwards to another.
func (g Ring) DistanceLeft(from, to protocol.Rank) protocol.Rank { return g.wrap(from - to) }

// wrap maps any number onto the ring, without a division where none is needed.
func (g Ring) wrap(r protocol.Rank) protocol.Rank {
	if r < 0 || r >= g.Size {
		r %= g.Size
	}
	if r < 0 {
		r += g.Size
	}
	return r
}

// Gap is a run of uncolored ranks between two colored ones.
type Gap struct {
	First  protocol.Rank // leftmost uncolored rank
	Length protocol.Rank
}

// Gaps returns the maximal runs of uncolored ranks from left to right, beginning
// at the first colored rank. A run that contains rank 0 is one gap. If no rank is
// colored, the ring is one gap from rank 0 on.
func (g Ring) Gaps(colored func(protocol.Rank) bool) iter.Seq[Gap] {
	return func(yield func(Gap) bool) {
		start := protocol.Rank(0)
		for start < g.Size && !colored(start) {
			start++
		}
		if start == g.Size {
			if g.Size > 0 {
				yield(Gap{First: 0, Length: g.Size})
			}
			return
		}
		last := start // the last colored rank so far, not wrapped
		for r := start; r <= start+g.Size; r++ {
			if !colored(g.wrap(r)) {
				continue
			}
			if length := r - last - 1; length > 0 && !yield(Gap{First: g.wrap(last + 1), Length: length}) {
				return
			}
			last = r
		}
	}
}

// MaxGap returns the length of the longest gap, or 0 if all ranks are colored.
func (g Ring) MaxGap(colored func(protocol.Rank) bool) protocol.Rank {
	var longest protocol.Rank
	for gap := range g.Gaps(colored) {
		longest = max(longest, gap.Length)
	}
	return longest
}
