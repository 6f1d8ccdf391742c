package p2p

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// ReceiveBuffer returns the buffer for the rest of a long frame, of which head has
// arrived: the memory behind the received part of its message. It returns nil if
// the frame does not carry the next segment.
//
// Until Receive, the bytes in the buffer are not part of the message.
func (e *Endpoint) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	f, err := parse(head)
	ch := e.channel(from)
	if err != nil || f.kind != data || ch == nil || !e.current(ch, &f) || f.number != ch.in.next {
		return nil
	}
	return ch.in.buffer(&f, size-len(head), &e.config)
}

// Receive takes a frame, including [FrameType]: its head, and its body if that is in
// a receive buffer. It returns an error if the frame is malformed.
func (e *Endpoint) Receive(now protocol.Time, from protocol.Rank, head, body []byte) error {
	f, err := parse(head)
	if err != nil {
		return fmt.Errorf("%w, from rank %d", err, from)
	}
	f.buffered = body
	ch := e.channel(from)
	if ch == nil || !e.current(ch, &f) {
		return nil // of or for a process that has left, or is not in the view yet
	}
	e.handleAck(now, ch, &f)
	e.wake(ch)
	switch f.kind {
	case data:
		return e.handleSegment(now, ch, &f)
	case poll:
		ch.replyToPoll(f.number)
	}
	return nil
}

// current reports whether a frame is between the processes that the view has at both
// ranks.
func (e *Endpoint) current(ch *channel, f *frame) bool {
	return f.to == e.incarnation && f.from == ch.incarnation
}

// handleAck takes the acknowledgment of a frame.
func (e *Endpoint) handleAck(now protocol.Time, ch *channel, f *frame) {
	ch.out.acknowledge(now, f.next)
	// What was sent before the poll and has not arrived is lost.
	if f.kind == pollReply && f.next == ch.out.base && f.next < f.number {
		ch.out.rewind()
		ch.out.rto = ch.out.roundTrip.timeout()
	}
	e.due = min(e.due, ch.out.timeoutAt)
}

// handleSegment takes a segment, if it is the next one.
func (e *Endpoint) handleSegment(now protocol.Time, ch *channel, f *frame) error {
	in := &ch.in
	if f.number > in.next && in.nackedAt != in.next+1 {
		in.nackedAt = in.next + 1 // once: many segments follow a gap
		ch.replyToPoll(f.number)
	}
	if f.number == in.next {
		message, complete, err := in.append(f, &e.config)
		if err != nil {
			return fmt.Errorf("%w: segment %d from rank %d does not continue the last one", err, f.number, ch.peer)
		}
		if complete {
			e.inbox.Push(Message{ch.peer, message})
		}
	}
	switch {
	case in.unacked >= e.config.WindowBytes/4:
		ch.control.ack = true
	case ch.control.ackAt == protocol.Never:
		ch.control.ackAt = now + ackDelay
		e.due = min(e.due, ch.control.ackAt)
	}
	return nil
}

// replyToPoll has an acknowledgment sent that echoes a number.
func (ch *channel) replyToPoll(echo uint64) { ch.control.reply, ch.control.echo = true, echo }
