package logp

import "math/bits"

// bitmap is a set of ranks that is cheap to walk in ascending order, which the
// model asks for and a list in order of arrival does not give.
type bitmap struct {
	words []uint64
	size  int
}

func newBitmap(size int) bitmap {
	return bitmap{words: make([]uint64, (size+63)/64), size: size}
}

func (b *bitmap) set(i int) { b.words[i>>6] |= 1 << (i & 63) }

func (b *bitmap) clear() { clear(b.words) }

// longestZeroRun is the longest run of ranks not in the set, on a ring: a run
// that goes over the end continues at the beginning.
func (b *bitmap) longestZeroRun() int {
	first, previous, longest := -1, -1, 0
	for w, word := range b.words {
		for ; word != 0; word &= word - 1 {
			i := w<<6 + bits.TrailingZeros64(word)
			if previous >= 0 {
				longest = max(longest, i-previous-1)
			} else {
				first = i
			}
			previous = i
		}
	}
	if first < 0 {
		return b.size
	}
	return max(longest, first+b.size-previous-1)
}
