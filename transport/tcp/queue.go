package tcp

import (
	"sync"

	"github.com/pleach-go/pleach/internal/wire"
)

// queue is what waits to be written to one connection: bytes, not frames, so
// that everything that waits goes out in one write. It is guarded by its
// peer's mutex. It belongs to one connection, or to the attempts to make it,
// and what is left in it ends with that.
type queue struct {
	buffers *buffers
	bytes   []byte // Frames that wait.
	inHand  int    // Bytes that the writer has taken and not yet written.
	frames  int    // Frames in bytes; those in hand may be out already.
	writing bool   // There is a writer.
	full    bool   // A Send was refused, and Room not yet told.
}

// frame is what is sent, in two parts that are one behind the other.
type frame struct{ head, body []byte }

func (f *frame) size() int { return len(f.head) + len(f.body) }

func (q *queue) waiting() int { return len(q.bytes) + q.inHand }

// push adds a frame, or notes that there was no room.
func (q *queue) push(f *frame, limit int) bool {
	if q.waiting()+wire.HeaderSize+f.size() > limit {
		q.full = true
		return false
	}
	q.add(f, 0)
	return true
}

// add adds a frame, without the first n bytes of it and its header.
func (q *queue) add(f *frame, n int) {
	if q.bytes == nil {
		q.bytes = q.buffers.get()
	}
	header := wire.Header(f.size())
	for _, b := range [...][]byte{header[:], f.head, f.body} {
		out := min(n, len(b))
		q.bytes = append(q.bytes, b[out:]...)
		n -= out
	}
	q.frames++
}

// skip drops the first n bytes, which have been written.
func (q *queue) skip(n int) {
	switch {
	case n < len(q.bytes):
		q.bytes = q.bytes[:copy(q.bytes, q.bytes[n:])]
	case cap(q.bytes) > 2*corkBytes:
		q.bytes, q.frames = nil, 0
	default:
		q.bytes, q.frames = q.bytes[:0], 0
	}
}

// take hands everything that waits to the writer.
func (q *queue) take() []byte {
	b := q.bytes
	q.bytes, q.inHand, q.frames = nil, len(b), 0
	return b
}

// wrote notes that the writer has written n bytes. It reports whether Room is
// to be told.
func (q *queue) wrote(n, limit int) bool {
	q.inHand -= n
	writable := q.full && q.waiting() <= limit/2
	if writable {
		q.full = false
	}
	return writable
}

// buffers are those that no queue uses. A member has many queues, and most are
// empty most of the time: an empty one has no buffer. A busy one would spend
// more time on growing new buffers than on writing.
type buffers struct {
	pool sync.Pool
}

// get returns an empty buffer of any capacity.
func (b *buffers) get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return nil
}

func (b *buffers) put(s []byte) { b.pool.Put(&s) }
