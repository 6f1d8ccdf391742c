package stream

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/queue"
	"github.com/pleach-go/pleach/protocol"
)

// ownStream is what this member sends as a root and has not sent yet.
type ownStream struct {
	flow         *flow
	waiting      queue.Queue[segment]
	bytes        int
	writing      bool // a message is being written
	writtenBytes int  // bytes of it
	// sending says that a message has been sent in part; restarts counts those
	// that a new view has cut in two.
	partlySent bool
	restarts   uint64
	burst      burst
	incomplete []protocol.Rank // members that have lost something of it, in order
	// When to ask again whether everybody has everything, and the pause after.
	pollDue, pollInterval protocol.Time
}

// ErrBusy says that too much is waiting to be sent.
var ErrBusy = errors.New("stream: outbox full")

// MaxMessage is the longest message that can be written.
func (m *Member) MaxMessage() int { return m.config.MaxMessage }

// SegmentSize is the longest segment Write takes.
func (m *Member) SegmentSize() int { return m.config.SegmentSize }

// Write takes one segment of a message to broadcast; left is how many bytes follow
// in others. [ErrBusy] says to try again when Next has sent something. The bytes are
// the caller's again when it returns.
func (m *Member) Write(payload []byte, remaining int) error {
	switch {
	case len(payload) > m.config.SegmentSize:
		return fmt.Errorf("stream: a segment of %d bytes: %d at most", len(payload), m.config.SegmentSize)
	case remaining < 0 || m.own.writtenBytes+len(payload)+remaining > m.config.MaxMessage:
		return fmt.Errorf("stream: %d bytes, and %d that follow: a message has %d at most", m.own.writtenBytes+len(payload), remaining, m.config.MaxMessage)
	case m.own.bytes > 0 && m.own.bytes+len(payload) > m.config.OutboxBytes:
		return ErrBusy
	}
	seg := segment{begins: !m.own.writing, remaining: uint32(remaining)}
	seg.frame = m.frames.join(make([]byte, headSizeOf(seg.remaining)), payload)
	m.own.writing = remaining > 0
	m.own.waiting.Push(seg)
	m.own.bytes += seg.size()
	m.own.writtenBytes += len(payload)
	if remaining == 0 {
		m.own.writtenBytes = 0
		m.stats.Broadcast++
	}
	return nil
}

// Abandon ends a message that is only partly written: nobody will get it.
func (m *Member) Abandon() { m.own.writing, m.own.writtenBytes = false, 0 }

// Unwritten is how many segments taken by Write wait until they can be sent. Those
// that only wait for more are not counted: see [Member.FlushBatch].
func (m *Member) Unwritten() int {
	if m.own.burst.batching {
		return 0
	}
	return m.own.waiting.Len()
}

// next takes the first segment that waits.
func (o *ownStream) pop() segment {
	seg := o.waiting.Pop()
	o.bytes -= seg.size()
	return seg
}

// emit sends the next segment of this member's own stream, unless a child has
// no room for it.
func (m *Member) emit(now protocol.Time) {
	b := &m.own.burst
	if b.batching = false; m.own.waiting.Len() == 0 {
		b.flush, b.waiting = false, 0
		return
	}
	if m.frozen || m.sendBlocked(now) {
		return
	}
	if b.batching = m.shouldBatch(now); b.batching {
		return
	}
	seg, f := m.own.nextBatch(&m.frames), m.own.flow
	b.waiting, b.emitted = m.own.waiting.Len(), now
	head := frame{
		kind: data, begins: seg.begins, remaining: seg.remaining, batch: seg.batch,
		root: f.root, incarnation: f.incarnation, first: f.next,
	}
	head.append(seg.frame[:0]) // the head that Write has left room for
	m.forward(f, f.next, &seg)
	m.keep(f, &seg)
	f.wanted, f.delivered = f.next, f.next
	m.own.partlySent = seg.remaining > 0
	m.scheduleCorrection(now, f)
	m.armTailProbe(now, f)
}

// restart drops what is left of a message that a new view has cut in two. Whoever
// writes it sees by [Member.Restarts] that it has to be written again.
func (m *Member) dropCutMessage() {
	if !m.own.partlySent {
		return
	}
	m.own.restarts++
	m.own.partlySent = false
	for m.own.waiting.Len() > 0 && !m.own.waiting.At(0).begins {
		m.own.pop()
	}
	if m.own.writing && m.own.waiting.Len() == 0 {
		m.Abandon()
	}
}

// Restarts counts the messages that were cut in two by a new view and have to be
// written again from their beginning.
func (m *Member) Restarts() uint64 { return m.own.restarts }
