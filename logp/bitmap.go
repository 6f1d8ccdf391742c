package logp

import "math/bits"

// bitmap is a set of ranks that is cheap to walk in ascending order, which the
// model asks for and a list in order of arrival does not give. 64 ranks can be
// looked at in one go, wherever they begin.
type bitmap struct {
	words []uint64 // one more than needed, so that fetch may look beyond the end
	size  int
}

func newBitmap(size int) bitmap {
	return bitmap{words: make([]uint64, (size+63)/64+1), size: size}
}

func (b *bitmap) set(i int) { b.words[i>>6] |= 1 << (i & 63) }

func (b *bitmap) remove(i int) { b.words[i>>6] &^= 1 << (i & 63) }

func (b *bitmap) has(i int) bool { return b.words[i>>6]>>(i&63)&1 != 0 }

func (b *bitmap) clear() { clear(b.words) }

// fetch returns the 64 bits from i on; those beyond the end are zero.
func (b *bitmap) fetch(i int) uint64 {
	w, s := i>>6, i&63
	return b.words[w]>>s | b.words[w+1]<<(64-s)
}

// put adds the bits of word from i on; none may reach into the next word of the
// set.
func (b *bitmap) put(i int, word uint64) { b.words[i>>6] |= word << (i & 63) }

// count is how many are in the set.
func (b *bitmap) count() int {
	n := 0
	for _, word := range b.words {
		n += bits.OnesCount64(word)
	}
	return n
}

// load makes b the n ranks from start on of a ring, going around it as often as
// that takes.
func (b *bitmap) load(ring *bitmap, start, n int) {
	b.clear()
	from := start % ring.size
	if from < 0 {
		from += ring.size
	}
	for at := 0; at < n; {
		piece := min(64-at&63, n-at, ring.size-from)
		b.put(at, ring.fetch(from)&below(piece))
		at += piece
		from += piece
		if from == ring.size {
			from = 0
		}
	}
}

// below is a word with its n lowest bits set.
func below(n int) uint64 { return 1<<n - 1 }

// within is the bits of word w of a set that lie in lo … hi−1.
func within(w, lo, hi int) uint64 {
	mask := ^uint64(0)
	if begin := w << 6; begin < lo {
		mask <<= lo - begin
	}
	if end := (w + 1) << 6; end > hi {
		mask &= ^uint64(0) >> (end - hi)
	}
	return mask
}

// longestZeroRun is the longest run of ranks not in the set, on a ring: a run
// that goes over the end continues at the beginning.
func (b *bitmap) longestZeroRun() int {
	first, last, longest := -1, -1, 0 // first and last in the set so far
	for w, word := range b.words {
		for at := w << 6; word != 0; {
			zeros := bits.TrailingZeros64(word)
			word >>= zeros
			at += zeros
			if first < 0 {
				first = at
			} else {
				longest = max(longest, at-last-1)
			}
			ones := bits.TrailingZeros64(^word)
			word >>= ones
			at += ones
			last = at - 1
		}
	}
	if first < 0 {
		return b.size
	}
	return max(longest, first+b.size-last-1)
}
