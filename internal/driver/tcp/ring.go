package tcp

import (
	"errors"
	"sync/atomic"
	"unsafe"
)

// A ring is a stream of bytes in memory that two processes share: a bounded queue with
// one producer and one consumer, without locks (Lamport 1977), so that no process can
// die holding one. The producer publishes bytes after it has copied them, by its
// position. Each side believes only its own position: that of the other side is checked
// each time it is read, because the other process may write anything, anywhere, at any
// time.
//
// A side that has to wait says so in a flag, looks again, and sleeps. The other side
// moves its position, and then reads the flag. Both orders are sequentially consistent,
// so at least one of the two sees what the other has done, and no wake-up is lost
// (Dekker, in Dijkstra 1965).
type ring struct {
	produced *atomic.Uint64 // The producer's position: bytes published so far.
	consumed *atomic.Uint64 // The consumer's position: bytes taken so far.
	asleep   *atomic.Uint64 // 1: the consumer sleeps, and is to be woken by the next byte.
	full     *atomic.Uint64 // Not 0: the producer sleeps until the consumer is at this position.
	data     []byte         // Its length is a power of two.
	wake     func()         // Wakes the other side.
}

const (
	// cacheLine separates what the two sides write.
	cacheLine = 64
	// ringHead is the size of the positions and flags of a ring.
	ringHead = 4 * cacheLine
	// publishBytes is how much a producer copies before it publishes it. The consumer
	// of a long frame copies its beginning while the producer copies the rest.
	publishBytes = 32 << 10
)

// errRing means that the other process has broken the rules of a ring.
var errRing = errors.New("tcp: the peer has damaged the shared memory")

// makeRing returns the ring whose positions and bytes are at the given places. The
// memory of head is aligned to a cache line.
func makeRing(head, data []byte, wake func()) ring {
	word := func(line int) *atomic.Uint64 {
		return (*atomic.Uint64)(unsafe.Pointer(&head[line*cacheLine]))
	}
	return ring{produced: word(0), consumed: word(1), asleep: word(2), full: word(3), data: data, wake: wake}
}

// size is the number of bytes that fit.
func (r *ring) size() uint64 { return uint64(len(r.data)) }

// at returns the bytes from a position to the end of the memory, at most n.
func (r *ring) at(position, n uint64) []byte {
	i := position & (r.size() - 1)
	return r.data[i:min(i+n, r.size())]
}

// producer is the writing side of a ring.
type producer struct {
	ring
	position  uint64 // Bytes copied so far.
	published uint64
	seen      uint64 // The consumer's position when it was last read.
}

// free returns how many bytes fit at present.
func (p *producer) free() (uint64, error) {
	p.seen = p.consumed.Load()
	used := p.position - p.seen
	if used > p.size() {
		return 0, errRing
	}
	return p.size() - used, nil
}

// put copies as many bytes as fit. It publishes a part of them; publish does so with the
// rest.
func (p *producer) put(b []byte) (n int, err error) {
	free := p.size() - (p.position - p.seen)
	if free < uint64(len(b)) {
		free, err = p.free()
		if err != nil {
			return 0, err
		}
	}
	b = b[:min(uint64(len(b)), free)]
	for n < len(b) {
		k := copy(p.at(p.position, publishBytes), b[n:])
		n += k
		p.position += uint64(k)
		if p.position-p.published >= publishBytes {
			p.publish()
		}
	}
	return n, nil
}

// publish lets the consumer see what was put, and wakes it if it sleeps.
func (p *producer) publish() {
	p.produced.Store(p.position)
	p.published = p.position
	if p.asleep.Load() != 0 && p.asleep.Swap(0) != 0 {
		p.wake()
	}
}

// rest says that the producer is about to sleep until half of the ring is free. It
// returns false if there is space already.
func (p *producer) rest() (bool, error) {
	p.full.Store(p.position - p.size()/2)
	free, err := p.free()
	if free > 0 || err != nil {
		p.full.Store(0)
		return false, err
	}
	return true, nil
}

// consumer is the reading side of a ring.
type consumer struct {
	ring
	position uint64 // Bytes taken so far.
	seen     uint64 // The producer's position when it was last read.
}

// ready reports whether there are bytes.
func (c *consumer) ready() (bool, error) {
	c.seen = c.produced.Load()
	if c.seen-c.position > c.size() {
		return false, errRing
	}
	return c.seen != c.position, nil
}

// get takes at most len(b) bytes, and wakes the producer if it has waited for that.
func (c *consumer) get(b []byte) (n int, err error) {
	if c.seen == c.position {
		if ready, err := c.ready(); !ready {
			return 0, err
		}
	}
	want := min(uint64(len(b)), c.seen-c.position)
	for uint64(n) < want {
		k := copy(b[n:], c.at(c.position, want-uint64(n)))
		n += k
		c.position += uint64(k)
	}
	c.consumed.Store(c.position)
	if at := c.full.Load(); at != 0 && int64(c.position-at) >= 0 && c.full.Swap(0) != 0 {
		c.wake()
	}
	return n, nil
}

// rest says that the consumer is about to sleep until there are bytes. It returns false
// if there are some already.
func (c *consumer) rest() (bool, error) {
	c.asleep.Store(1)
	ready, err := c.ready()
	if ready || err != nil {
		c.asleep.Store(0)
		return false, err
	}
	return true, nil
}
