package engine

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Messages of one call are as long as those of the next, so their memory is reused when
// it is certain that no reader is left: of a received message, once its task has combined
// it; of a sent message, once the link has delivered it and the log has dropped it. All
// other memory (results, encoded elements, replayed messages) is left to the garbage
// collector.

// BufferPool holds unused memory by size class.
type BufferPool struct {
	classes [80]sync.Pool // of *byte
	buffers sync.Pool     // of *Buffer
	poison  func([]byte)  // see Config.Poison
}

// Size classes grow by between a sixth and a quarter. classOf returns the smallest class
// that holds n bytes; classSize is its inverse.
func classOf(n int) int {
	n = max(n, smallestClass)
	k := bits.Len(uint(n-1)) - 3 // all but the three leading bits
	return 4*(k-smallestClassBits) + (n-1)>>k - 3
}

func classSize(class int) int { return (4 + class%4) << (class/4 + smallestClassBits) }

const (
	smallestClassBits = 6
	smallestClass     = 4 << smallestClassBits // bytes
)

// get returns memory with arbitrary content.
func (p *BufferPool) get(n int) []byte {
	c := classOf(n)
	if c >= len(p.classes) {
		return make([]byte, n)
	}
	// A *byte fits an interface without an allocation; a slice would not.
	if b, ok := p.classes[c].Get().(*byte); ok {
		return unsafe.Slice(b, classSize(c))[:n]
	}
	return make([]byte, n, classSize(c))
}

// put takes memory back, if its capacity is that of a class.
func (p *BufferPool) put(b []byte) {
	if c := classOf(cap(b)); c < len(p.classes) && cap(b) == classSize(c) {
		if p.poison != nil {
			p.poison(b[:cap(b)])
		}
		p.classes[c].Put(unsafe.SliceData(b))
	}
}

// Buffer is reference-counted memory of a pool.
type Buffer struct {
	Bytes   []byte
	refs    atomic.Int32
	pool    *BufferPool
	release func() // Release as a value, so that passing it on does not allocate
}

// newBuffer returns a buffer with arbitrary content and one reference.
func (p *BufferPool) newBuffer(n int) *Buffer { return p.wrap(p.get(n)) }

// wrap makes a buffer of memory that nothing else uses.
func (p *BufferPool) wrap(b []byte) *Buffer {
	s, ok := p.buffers.Get().(*Buffer)
	if !ok {
		s = &Buffer{pool: p}
		s.release = s.Release
	}
	s.Bytes = b
	s.refs.Store(1)
	return s
}

// Payload returns the buffer's whole content.
func (b *Buffer) Payload() Payload { return Payload{b.Bytes, b} }

// Release drops one reference. The last one returns the memory to the pool.
func (b *Buffer) Release() {
	switch left := b.refs.Add(-1); {
	case left == 0:
		p := b.pool
		p.put(b.Bytes)
		b.Bytes = nil
		p.buffers.Put(b)
	case left < 0:
		panic("collective: a buffer is released twice")
	}
}

// Payload is the content of a message: bytes, and the buffer that they lie in. Without a
// buffer the bytes belong to the garbage collector.
type Payload struct {
	Bytes  []byte
	Buffer *Buffer
}

// Retain adds a reference.
func (p Payload) Retain() Payload {
	if p.Buffer != nil {
		p.Buffer.refs.Add(1)
	}
	return p
}

// Release drops a reference.
func (p Payload) Release() {
	if p.Buffer != nil {
		p.Buffer.Release()
	}
}
