package stream

import "bytes"

// slab allocates small frames from larger chunks. Allocating each alone, and having the
// garbage collector trace it, costs more than everything else that is done with it. A
// frame that is retained retains its chunk, so a chunk is no larger than a page.
type slab struct{ rest []byte }

const (
	slabSize  = 4 << 10
	slabFrame = slabSize / 4 // the longest frame that comes from a chunk
)

// get returns an empty slice of capacity n.
func (s *slab) get(n int) []byte {
	if n > slabFrame {
		return make([]byte, 0, n)
	}
	if n > len(s.rest) {
		s.rest = make([]byte, slabSize)
	}
	b := s.rest[:0:n]
	s.rest = s.rest[n:]
	return b
}

// join returns a copy of a and b. Unlike with make, a long one is not cleared first.
func (s *slab) join(a, b []byte) []byte {
	if n := len(a) + len(b); n <= slabFrame {
		return append(append(s.get(n), a...), b...)
	}
	return bytes.Join([][]byte{a, b}, nil)
}
