package stream

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// ownStream is what this member sends as a root and has not sent yet.
type ownStream struct {
	flow    *flow
	waiting deque[segment]
	bytes   int
	within  bool // a message is being written
	open    int  // bytes of it
	// sending says that a message has been sent in part; restarts counts those
	// that a new view has cut in two.
	sending  bool
	restarts uint64
	burst    burst
	lossy    []protocol.Rank // members that have lost something of it, in order
	// When to ask again whether everybody has everything, and the pause after.
	pollDue, pollPause protocol.Time
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
func (m *Member) Write(payload []byte, left int) error {
	switch {
	case len(payload) > m.config.SegmentSize:
		return fmt.Errorf("stream: a segment of %d bytes: %d at most", len(payload), m.config.SegmentSize)
	case left < 0 || m.own.open+len(payload)+left > m.config.MaxMessage:
		return fmt.Errorf("stream: %d bytes, and %d that follow: a message has %d at most", m.own.open+len(payload), left, m.config.MaxMessage)
	case m.own.bytes > 0 && m.own.bytes+len(payload) > m.config.OutboxBytes:
		return ErrBusy
	}
	seg := segment{begins: !m.own.within, left: uint32(left)}
	seg.frame = m.frames.join(make([]byte, headSizeOf(seg.left)), payload)
	m.own.within = left > 0
	m.own.waiting.push(seg)
	m.own.bytes += seg.size()
	m.own.open += len(payload)
	if left == 0 {
		m.own.open = 0
		m.stats.Broadcast++
	}
	return nil
}

// Abandon ends a message that is only partly written: nobody will get it.
func (m *Member) Abandon() { m.own.within, m.own.open = false, 0 }

// Unwritten is how many segments taken by Write wait until they can be sent. Those
// that only wait for more are not counted: see [Member.Hasten].
func (m *Member) Unwritten() int {
	if m.own.burst.gathering {
		return 0
	}
	return m.own.waiting.len()
}

// next takes the first segment that waits.
func (o *ownStream) next() segment {
	seg := o.waiting.pop()
	o.bytes -= seg.size()
	return seg
}

// emit sends the next segment of this member's own stream, unless a child has
// no room for it.
func (m *Member) emit(now protocol.Time) {
	b := &m.own.burst
	if b.gathering = false; m.own.waiting.len() == 0 {
		b.hasten, b.waiting = false, 0
		return
	}
	if m.frozen || m.waits(now) {
		return
	}
	if b.gathering = m.gathers(now); b.gathering {
		return
	}
	seg, f := m.own.gathered(&m.frames), m.own.flow
	b.waiting, b.emitted = m.own.waiting.len(), now
	head := frame{
		kind: data, begins: seg.begins, left: seg.left, batch: seg.batch,
		root: f.root, incarnation: f.incarnation, first: f.next,
	}
	head.append(seg.frame[:0]) // the head that Write has left room for
	m.pass(f, f.next, &seg)
	m.keep(f, &seg)
	f.wanted, f.delivered = f.next, f.next
	m.own.sending = seg.left > 0
	m.correct(now, f)
	m.remind(now, f)
}

// restart drops what is left of a message that a new view has cut in two. Whoever
// writes it sees by [Member.Restarts] that it has to be written again.
func (m *Member) restart() {
	if !m.own.sending {
		return
	}
	m.own.restarts++
	m.own.sending = false
	for m.own.waiting.len() > 0 && !m.own.waiting.at(0).begins {
		m.own.next()
	}
	if m.own.within && m.own.waiting.len() == 0 {
		m.Abandon()
	}
}

// Restarts counts the messages that were cut in two by a new view and have to be
// written again from their beginning.
func (m *Member) Restarts() uint64 { return m.own.restarts }
