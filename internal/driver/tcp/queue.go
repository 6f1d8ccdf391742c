package tcp

import (
	"sync"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// queue is the bounded queue of one connection: bytes, not frames, so that
// everything that waits goes out in one write. Its peer's mutex guards it. It
// belongs to one connection, or to the attempts to make it, and its frames are
// dropped with that.
type queue struct {
	buffers *buffers
	bytes   []byte // The frames that wait.
	inHand  int    // Bytes that the writer has taken but not yet written.
	frames  int    // Frames in bytes; those in hand may be written already.
	writing bool   // A writer goroutine runs.
	full    bool   // A Send has failed, and Writable was not called since.
	resume  int    // Writable is due when no more than so many bytes wait.
}

// frame is a frame in two parts: head, followed by body.
type frame struct{ head, body []byte }

func (f *frame) size() int { return len(f.head) + len(f.body) }

func (q *queue) waiting() int { return len(q.bytes) + q.inHand }

// push adds a frame, or notes that the queue was full.
func (q *queue) push(f *frame, limit int) bool {
	if n := q.waiting(); n > 0 && n+wire.HeaderSize+f.size() > limit {
		q.full, q.resume = true, limit/2
		return false
	}
	q.add(f, 0)
	return true
}

// add adds a header and a frame, without their first n bytes.
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

// addControl adds a control message, which no handler sees.
func (q *queue) addControl(message []byte) {
	q.bytes = append(q.bytes, message...)
}

// skip removes the first n bytes, which have been written.
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

// take returns all waiting bytes, for the writer.
func (q *queue) take() []byte {
	b := q.bytes
	q.bytes, q.inHand, q.frames = nil, len(b), 0
	return b
}

// wrote notes that the writer has written n bytes. It reports whether to call
// Writable.
func (q *queue) wrote(n int) bool {
	q.inHand -= n
	writable := q.full && q.waiting() <= q.resume
	if writable {
		q.full = false
	}
	return writable
}

// buffers is a pool of queue buffers. A member has many queues, and most are empty
// most of the time: an empty queue has no buffer. A busy queue would spend more
// time on growing new buffers than on writing.
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
