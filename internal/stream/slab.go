package stream

import "bytes"

// slab hands out memory for small frames from larger pieces: to allocate each
// alone, and to have it looked at by the garbage collector, would cost more than
// all else that is done with it. A frame that is held on to holds its piece too,
// so pieces are no larger than a page.
type slab struct{ rest []byte }

const (
	slabSize  = 4 << 10
	slabFrame = slabSize / 4 // the longest frame taken from a piece
)

// get returns an empty slice with room for n bytes.
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

// join returns a copy of two pieces. A large one is not cleared first, as make
// would do.
func (s *slab) join(a, b []byte) []byte {
	if n := len(a) + len(b); n <= slabFrame {
		return append(append(s.get(n), a...), b...)
	}
	return bytes.Join([][]byte{a, b}, nil)
}
