package broadcast_test

import (
	"iter"

	"github.com/pleach-go/pleach/protocol"
)

// everySet goes through all sets of ranks 1 … size−1: all but the root,
// rank 0. The slice is used again.
func everySet(size protocol.Rank) iter.Seq[[]protocol.Rank] {
	return func(yield func([]protocol.Rank) bool) {
		dead := make([]protocol.Rank, 0, size)
		for mask := range uint64(1) << (size - 1) {
			dead = dead[:0]
			for r := protocol.Rank(1); r < size; r++ {
				if mask>>(r-1)&1 != 0 {
					dead = append(dead, r)
				}
			}
			if !yield(dead) {
				return
			}
		}
	}
}

// everySetOf goes through the sets of exactly n of the ranks first … size−1 in
// lexicographic order. The slice is used again.
func everySetOf(n int, first, size protocol.Rank) iter.Seq[[]protocol.Rank] {
	return func(yield func([]protocol.Rank) bool) {
		chosen := make([]protocol.Rank, 0, n)
		var choose func(from protocol.Rank) bool
		choose = func(from protocol.Rank) bool {
			if len(chosen) == n {
				return yield(chosen)
			}
			for r := from; r < size; r++ {
				chosen = append(chosen, r)
				if !choose(r + 1) {
					return false
				}
				chosen = chosen[:len(chosen)-1]
			}
			return true
		}
		choose(first)
	}
}
