package collective

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Letters of one call are as long as those of the next. So their memory is used
// again, where it is clear that nobody needs it any more: what has been received
// and combined, at once; what was sent, when the link has brought it there and, if
// it is kept for takeovers, the floor has passed. Memory for which that is not clear
// (what a program got as a result, what went through a Codec, what was sent again
// to a new owner) is left to the garbage collector.

// paper is memory that is not used at the moment, by size.
type bufferPool struct {
	sizes   [80]sync.Pool // of *byte
	buffers sync.Pool     // of *sheet
	// spoil, if not nil, is told of memory that is taken back: tests overwrite it,
	// to see that nobody reads it any more.
	poison func([]byte)
}

// Sizes grow by a quarter at least, and by a half at most: class and room are the
// reverse of each other.
func class(n int) int {
	n = max(n, smallest)
	k := bits.Len(uint(n-1)) - 3 // of the last two bits that count
	return 4*(k-smallestBits) + (n-1)>>k - 3
}

func room(class int) int { return (4 + class%4) << (class/4 + smallestBits) }

// smallest is the smallest size. Less would not be worth it.
const (
	smallestBits = 6
	smallest     = 4 << smallestBits
)

// get returns memory, with anything in it.
func (p *bufferPool) get(n int) []byte {
	c := class(n)
	if c >= len(p.sizes) {
		return make([]byte, n)
	}
	if b, ok := p.sizes[c].Get().(*byte); ok {
		return bytesFrom(b, room(c))[:n]
	}
	return make([]byte, n, room(c))
}

// put takes memory back, if it is of a size that get returns.
func (p *bufferPool) put(b []byte) {
	if c := class(cap(b)); c < len(p.sizes) && cap(b) == room(c) {
		if p.poison != nil {
			p.poison(b[:cap(b)])
		}
		p.sizes[c].Put(startOf(b))
	}
}

// sheet is memory that letters are written on. It goes back when nobody uses it.
type buffer struct {
	bytes   []byte
	refs    atomic.Int32
	pool    *bufferPool
	release func() // ends one use
}

// sheet returns an empty sheet, with one use.
func (p *bufferPool) newBuffer(n int) *buffer { return p.wrap(p.get(n)) }

// sheetOf makes a sheet of memory that nobody else uses.
func (p *bufferPool) wrap(b []byte) *buffer {
	s, ok := p.buffers.Get().(*buffer)
	if !ok {
		s = &buffer{pool: p}
		s.release = s.doRelease
	}
	s.bytes = b
	s.refs.Store(1)
	return s
}

func (s *buffer) doRelease() {
	switch left := s.refs.Add(-1); {
	case left == 0:
		p := s.pool
		p.put(s.bytes)
		s.bytes = nil
		p.buffers.Put(s)
	case left < 0:
		panic("collective: memory is given back twice")
	}
}

// page is what a letter says, and the sheet it is written on. nil: the memory is
// the garbage collector's.
type payload struct {
	bytes  []byte
	buffer *buffer
}

// hold says that there is one more who uses it, and drop one fewer.
func (p payload) retain() payload {
	if p.buffer != nil {
		p.buffer.refs.Add(1)
	}
	return p
}

func (p payload) release() {
	if p.buffer != nil {
		p.buffer.doRelease()
	}
}

// Buffer returns memory for a message that is to be given to [Engine.Receive].
func (e *Engine) Buffer(n int) []byte { return e.pool.get(n) }

// Lender is a [Link] that says when it does not need what it was given any more,
// so that it can be used again.
type ZeroCopyLink interface {
	Link
	// Lend is like Send. If it returns nil, back is called once, when neither
	// head nor body is needed: it must not wait. It is not called if the link
	// ends before.
	SendOwned(ctx context.Context, to int, head, body []byte, back func()) error
}
