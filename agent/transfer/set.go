package transfer

import (
	"encoding/binary"
	"math/bits"
)

// set is a set of chunks: a bitmap.
type set struct {
	words []uint64
	size  int // chunks of the file
	count int // chunks in the set
}

// fullSet has all n chunks.
func fullSet(n int) set {
	s := set{words: make([]uint64, (n+63)/64), size: n, count: n}
	for i := range n {
		s.words[i/64] |= 1 << (i % 64)
	}
	return s
}

func (s *set) has(i int) bool { return s.words[i/64]>>(i%64)&1 == 1 }

// remove removes a chunk, and reports whether it was there.
func (s *set) remove(i int) bool {
	if !s.has(i) {
		return false
	}
	s.words[i/64] &^= 1 << (i % 64)
	s.count--
	return true
}

func (s *set) append(b []byte) []byte {
	for _, w := range s.words {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return b
}

// parseSet reads a set of chunks of a file that has n.
func parseSet(b []byte, n int) (set, error) {
	s := set{words: make([]uint64, (n+63)/64), size: n}
	if len(b) != 8*len(s.words) {
		return set{}, errAnswer
	}
	for i := range s.words {
		s.words[i] = binary.BigEndian.Uint64(b[8*i:])
		s.count += bits.OnesCount64(s.words[i])
	}
	if n%64 != 0 && s.words[len(s.words)-1]>>(n%64) != 0 {
		return set{}, errAnswer
	}
	return s, nil
}
