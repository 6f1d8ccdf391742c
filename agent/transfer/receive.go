package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/notify"
)

// receive is one file that comes in. A goroutine of its own opens the target and takes
// what was broadcast, in order: a disk that is slow does not hold up the group's other
// messages at once.
type receive struct {
	key      key
	manifest *manifest
	base     string // the allowed directory
	elements []string
	over     chan struct{}        // closed when the copy is over
	settled  chan struct{}        // closed when the answer is final
	ended    chan struct{}        // closed when the goroutine has ended
	giveBack func(pleach.Message) // releases a message
	changed  notify.Notifier
	arrived  chan struct{} // there is a message
	room     chan struct{} // there is room for one

	mu      sync.Mutex
	queue   []message
	bytes   int // of chunks in the queue
	clogged bool
	answer  answer
	round   int // the last that has ended; -1 before the target is open
	target  *target
	file    *os.File
	claimed map[int]bool // chunks that are being written
}

// queueBytes is how much of a file waits to be written, or one chunk. If there is more for
// slowDisk, chunks are dropped. The sender sends them again.
const (
	queueBytes = 8 << 20
	slowDisk   = time.Second
)

func newReceive(k key, m *manifest) *receive {
	return &receive{
		key: k, manifest: m, round: -1, claimed: make(map[int]bool),
		answer: answer{state: partial, lacks: fullSet(len(m.hashes))},
		over:   make(chan struct{}), settled: make(chan struct{}), ended: make(chan struct{}),
		arrived: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

// refused is a receive that has failed before it began.
func refused(k key, round int, why error) *receive {
	r := newReceive(k, new(manifest))
	r.round = round
	r.settle(failure(why))
	close(r.ended)
	return r
}

// remains is what is known of a receive that has ended: its answer, without the manifest.
func (r *receive) remains() *receive {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := newReceive(r.key, new(manifest))
	known.round = r.round
	known.settle(r.answer)
	close(known.ended)
	return known
}

func failure(why error) answer {
	text := why.Error()
	return answer{state: failed, why: text[:min(len(text), maxWhy)]}
}

// run receives the file, until it is there or the copy is over. It waits for a receive of the same file
// that has ended, if there is one.
func (r *receive) run(before *receive, round int) {
	defer close(r.ended)
	if before != nil {
		<-before.ended
	}
	r.open()
	defer r.close()
	r.endRound(round)
	for {
		m, ok := r.next()
		switch {
		case !ok:
			return
		case m.kind == chunk:
			r.take(int(m.number), m.data)
			r.giveBack(m.broadcast)
		case m.kind == endRun:
			r.endRound(int(m.number))
		}
	}
}

// open opens the target, and looks at what is there already.
func (r *receive) open() {
	t, err := openTarget(r.base, r.elements, r.manifest.name)
	if err != nil {
		r.settle(failure(err))
		return
	}
	r.target = t
	t.verified = r.changed.Notify // to verify a long file takes long, and is a sign of the copy
	if t.has(r.manifest, r.over) {
		r.settle(answer{state: present})
		return
	}
	lacks := fullSet(len(r.manifest.hashes))
	file, err := t.openPart(r.manifest, &lacks, r.over)
	if err != nil {
		r.settle(failure(err))
		return
	}
	r.mu.Lock()
	r.file, r.answer.lacks = file, lacks
	r.mu.Unlock()
	if lacks.count == 0 {
		r.publish()
	}
}

// close ends all access to the disk. The partial file stays, for the next copy.
func (r *receive) close() {
	r.settle(failure(errors.New("the copy is over")))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		r.file.Close()
	}
	if r.target != nil {
		r.target.folder.Close()
	}
	r.queue = nil
}

// settle sets the final answer, unless there is one.
func (r *receive) settle(a answer) {
	r.mu.Lock()
	if r.answer.state == partial {
		r.answer = a
		close(r.settled)
	}
	r.mu.Unlock()
	r.changed.Notify()
}

// isOver reports whether the receive has nothing more to do.
func (r *receive) isOver() bool {
	select {
	case <-r.over:
		return true
	case <-r.settled:
		return true
	default:
		return false
	}
}

func (r *receive) endRound(round int) {
	r.mu.Lock()
	r.round = max(r.round, round)
	r.mu.Unlock()
	r.changed.Notify()
}

// push queues what was broadcast. It blocks while the queue is full, which holds up the
// sender, but not for longer than slowDisk.
func (r *receive) push(m message) {
	var timeout <-chan time.Time
	for !r.tryPush(m, timeout == nil) {
		if timeout == nil {
			timer := time.NewTimer(slowDisk)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-r.room:
		case <-r.over:
			return
		case <-r.settled:
			return
		case <-timeout:
			r.mu.Lock()
			r.clogged = true
			r.mu.Unlock()
			return
		}
	}
	select {
	case r.arrived <- struct{}{}:
	default:
	}
}

// tryPush reports whether a message is in the queue, or is not wanted.
func (r *receive) tryPush(m message, first bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	full := r.bytes > 0 && r.bytes+len(m.data) > queueBytes
	switch {
	case r.answer.state != partial || m.kind == chunk && r.round < 0:
		return true
	case m.kind == chunk && full:
		return r.clogged && first
	}
	r.clogged = r.clogged && full
	r.queue = append(r.queue, m)
	r.bytes += len(m.data)
	return true
}

// next waits for the next message of the queue. There is none when the receive is over.
func (r *receive) next() (message, bool) {
	for {
		r.mu.Lock()
		if len(r.queue) > 0 {
			m := r.queue[0]
			r.queue[0] = message{}
			r.queue, r.bytes = r.queue[1:], r.bytes-len(m.data)
			r.mu.Unlock()
			select {
			case r.room <- struct{}{}:
			default:
			}
			return m, true
		}
		r.mu.Unlock()
		select {
		case <-r.arrived:
		case <-r.over:
			return message{}, false
		case <-r.settled:
			return message{}, false
		}
	}
}

// take writes a chunk that is lacking. It counts if it is what the manifest says.
func (r *receive) take(i int, data []byte) {
	file, ok := r.claim(i)
	if !ok {
		return
	}
	right, err := r.write(file, i, data)
	if err != nil {
		r.settle(failure(err))
	}
	if r.release(i, right && err == nil) {
		r.publish()
	}
	r.changed.Notify()
}

// claim makes the caller the one that writes a chunk, if it is lacking.
func (r *receive) claim(i int) (*os.File, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil || r.answer.state != partial || i >= len(r.manifest.hashes) || !r.answer.lacks.has(i) ||
		r.claimed[i] {
		return nil, false
	}
	r.claimed[i] = true
	return r.file, true
}

// release is called after the write, and reports whether that was the last chunk.
func (r *receive) release(i int, written bool) (last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.claimed, i)
	return written && r.answer.state == partial && r.answer.lacks.remove(i) && r.answer.lacks.count == 0
}

// piece is how much of a chunk is hashed and written at a time, while it is in the
// processor's cache.
const piece = 128 << 10

// write writes a chunk, and reports whether it is what the manifest says. What it has
// written otherwise still counts as lacking.
func (r *receive) write(file *os.File, i int, data []byte) (right bool, err error) {
	offset, length := r.manifest.span(i)
	if len(data) != length {
		return false, nil
	}
	sum := sha256.New()
	for len(data) > 0 {
		p := data[:min(piece, len(data))]
		sum.Write(p)
		if _, err := file.WriteAt(p, offset); err != nil {
			return false, err
		}
		data, offset = data[len(p):], offset+int64(len(p))
	}
	return Hash(sum.Sum(nil)) == r.manifest.hashes[i], nil
}

// publish gives the complete file its name.
func (r *receive) publish() {
	if err := r.target.publish(r.file, r.manifest); err != nil {
		r.settle(failure(err))
		return
	}
	r.settle(answer{state: done})
}

// stalled is how long a question about a round waits without a sign of the copy. In a group
// that loses no messages, the end of the round always comes.
const stalled = 10 * time.Second

// await waits until a round has ended, and returns what the receiver has then.
func (r *receive) await(ctx context.Context, round int) []byte {
	for {
		changed := r.changed.Wait()
		if reply, ok := r.reply(round); ok {
			return reply
		}
		timer := time.NewTimer(stalled)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil // no member waits for it
		case <-timer.C:
			round = -1
		}
		timer.Stop()
	}
}

// reply is the answer, if a round has ended.
func (r *receive) reply(round int) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The last chunk is there, but the file has not got its name yet.
	publishing := r.answer.state == partial && r.answer.lacks.count == 0
	return r.answer.append(nil), !publishing && (r.round >= round || r.answer.state != partial)
}
