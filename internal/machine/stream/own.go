package stream

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/base/queue"
	"github.com/pleach-go/pleach/protocol"
)

// The stream of which this member is the root: from the program's writes to the tree.

// ownStream is what this member has yet to send as a root.
type ownStream struct {
	flow         *flow
	waiting      queue.Queue[segment]
	unsent       uint64 // complete messages in waiting
	bytes        int
	writing      bool // a message is partly written
	tracing      bool // the next message is marked; see trace.go
	writtenBytes int  // bytes of it
	// partlySent says that a message has been sent in part. restarts counts those that a
	// new view has cut in two.
	partlySent bool
	restarts   uint64
	messages   uint32 // begun so far; it wraps around
	receipts   receipts
	sample     propagationSample
	burst      burst
	inFlight   int // bytes that are sent, and that some member may not have accepted that answers, by weight
	held       int // bytes that are no longer in flight, but that a member may lack that does not answer
	window     int // how many of them all active roots together may have, if the budget allows
	// timed is the position whose credit is measured, sent at timedAt. If zero, none is.
	// halved says that the window was halved because it takes too long.
	timed   uint64
	timedAt protocol.Time
	halved  bool
	base    baseDelay
	sentAt  sendTimes
	// blockedSince is when flow control began to block, or 0. Credits are polled at
	// creditDue then, and again after creditInterval.
	blockedSince, creditDue, creditInterval protocol.Time
	incomplete                              []protocol.Rank // members that have lost something of it, in ascending order
	// When to repeat an unanswered poll, and the interval after that.
	pollDue, pollInterval           protocol.Time
	processedDue, processedInterval protocol.Time // next PollProcessed, and the interval of these polls
}

// ErrBusy is returned by Write if too much waits to be sent.
var ErrBusy = errors.New("stream: outbox full")

// MaxMessage returns the longest message that can be written.
func (m *Member) MaxMessage() int { return m.config.MaxMessage }

// SegmentSize returns the longest segment that Write accepts.
func (m *Member) SegmentSize() int { return m.config.SegmentSize }

// Write queues one segment of a message to broadcast; remaining is how many bytes of
// the message follow. If it returns [ErrBusy], the caller tries again after Next has
// sent something. Write does not retain payload.
func (m *Member) Write(payload []byte, remaining int) error {
	return m.write(Label{}, payload, remaining)
}

// write queues one segment, the first one behind the label of its message, if it has one.
func (m *Member) write(label Label, payload []byte, remaining int) error {
	written := m.own.writtenBytes + label.Size() + len(payload)
	switch {
	case len(payload) > m.config.SegmentSize:
		return fmt.Errorf("stream: a segment of %d bytes: %d at most", len(payload), m.config.SegmentSize)
	case remaining < 0 || written+remaining > m.config.MaxMessage:
		return fmt.Errorf("stream: %d bytes, and %d that follow: a message has %d at most", written, remaining,
			m.config.MaxMessage)
	case m.own.bytes > 0 && m.own.bytes+len(payload) > m.config.OutboxBytes:
		return ErrBusy
	}
	seg := segment{begins: !m.own.writing, labeled: label != (Label{}), remaining: uint32(remaining)}
	seg.traced = seg.begins && m.own.tracing
	m.own.tracing = false
	seg.frame = m.frames.join(label.append(make([]byte, headSizeOf(seg.remaining))), payload)
	m.own.writing = remaining > 0
	m.own.waiting.Push(seg)
	m.own.bytes += seg.size()
	m.own.writtenBytes = written
	if remaining == 0 {
		m.own.unsent++
		m.own.receipts.accepted++
		m.stats.Broadcast++
		m.stats.BroadcastBytes += uint64(m.own.writtenBytes)
		m.own.writtenBytes = 0
	}
	return nil
}

// Abandon ends a message that is only partly written. No program gets it.
func (m *Member) Abandon() { m.own.writing, m.own.tracing, m.own.writtenBytes = false, false, 0 }

// Unwritten returns how many segments wait until they can be sent. Those that only wait
// for a batch are not counted: see [Member.FlushBatch].
func (m *Member) Unwritten() int {
	if m.own.burst.batching {
		return 0
	}
	return m.own.waiting.Len()
}

// pop removes the first segment that waits.
func (o *ownStream) pop() segment {
	seg := o.waiting.Pop()
	o.bytes -= seg.size()
	if seg.remaining == 0 {
		o.unsent--
	}
	return seg
}

// emit sends the next segment of this member's own stream. It reports false if there is
// none, or if it has to wait.
func (m *Member) emit(now protocol.Time) bool {
	b := &m.own.burst
	b.batching = false
	if m.own.waiting.Len() == 0 {
		b.flush, b.waiting = false, 0
		return false
	}
	if m.frozen || m.deliversOwn() && m.inboxFull() || m.windowFull(now) {
		return false
	}
	b.batching = m.shouldBatch(now)
	if b.batching {
		return false
	}
	// Flow control has found room for one message. The rest of a batch fits into what a
	// window leaves of KeepBytes.
	seg, begun := m.own.nextBatch(&m.frames, min(maxBatchBytes, m.config.KeepBytes/4))
	f := m.own.flow
	seg.messages = m.own.messages
	m.own.messages += begun
	b.waiting, b.emitted = m.own.waiting.Len(), now
	head := frame{
		kind: data, begins: seg.begins, remaining: seg.remaining, batch: seg.batch, labeled: seg.labeled, traced: seg.traced,
		root: f.root, incarnation: f.incarnation, first: f.next,
		messages: seg.messages, unaccepted: f.unaccepted(f.next),
	}
	head.append(seg.frame[:0]) // fills the head that Write has reserved
	if seg.traced {
		m.noteArrival(now, f, f.root, f.next, fromTree)
	}
	m.forward(f, f.next, &seg)
	m.keep(f, &seg)
	f.arrived = arrival{f.next, now}
	m.own.sentAt.note(now, f.next)
	m.own.inFlight += seg.weight()
	m.timeSent(now)
	f.wanted = f.next
	if m.deliversOwn() {
		m.deliver(f, f.next)
	} else {
		f.delivered = f.next
	}
	m.setActive(now, f)
	m.timeCredit(now)
	if len(f.grantors) == 0 {
		m.advanceCredit(now)
	}
	m.own.partlySent = seg.remaining > 0
	m.scheduleCorrection(now, f)
	m.armTailProbe(now, f)
	return true
}

// dropCutMessage drops the rest of a message that a new view has cut in two. Its writer
// sees by [Member.Restarts] that it has to write the message again.
func (m *Member) dropCutMessage() {
	if !m.own.partlySent {
		return
	}
	m.own.restarts++
	m.own.messages-- // it begins again
	m.own.partlySent = false
	for m.own.waiting.Len() > 0 && !m.own.waiting.At(0).begins {
		if seg := m.own.pop(); seg.remaining == 0 {
			m.own.receipts.accepted-- // it is written again
		}
	}
	if m.own.writing && m.own.waiting.Len() == 0 {
		m.Abandon()
	}
}

// Restarts counts the messages that a new view has cut in two. They have to be written
// again from the beginning.
func (m *Member) Restarts() uint64 { return m.own.restarts }
