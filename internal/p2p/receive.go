package p2p

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// ReceiveBuffer returns where all of a long frame belongs but its first bytes, the head:
// behind what has come of its message. Nil: nowhere.
//
// What is written there does not matter before Receive: the message ends before it.
func (c *Endpoint) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	f, err := parse(head)
	ch := c.channel(from)
	if err != nil || f.kind != data || ch == nil || ch.session != f.from || f.number != ch.in.next {
		return nil
	}
	return ch.in.buffer(&f, size-len(head), &c.config)
}

// Receive takes a frame, [Mark] included: a head, and a body behind it, if it was
// placed. An error says that it made no sense.
func (c *Endpoint) Receive(now protocol.Time, from protocol.Rank, head, body []byte) error {
	f, err := parse(head)
	if err != nil {
		return fmt.Errorf("%w, from rank %d", err, from)
	}
	f.buffered = body
	ch := c.channel(from)
	if ch == nil || !c.current(ch, &f) {
		return nil // of or for somebody who is not there any more, or not yet
	}
	if f.to == c.config.Session {
		c.handleAck(now, ch, &f)
	}
	switch f.kind {
	case data:
		return c.handleSegment(now, ch, &f)
	case poll:
		c.replyToPoll(ch, f.number)
	}
	return nil
}

// current reports whether a frame is between the two sessions that there are now.
func (c *Endpoint) current(ch *channel, f *frame) bool {
	if f.to != 0 && f.to != c.config.Session || f.from <= c.former[ch.peer] {
		return false
	}
	if ch.session == 0 {
		ch.session = f.from
	}
	return ch.session == f.from
}

// handleAck takes in how far the peer has come.
func (c *Endpoint) handleAck(now protocol.Time, ch *channel, f *frame) {
	ch.out.acknowledge(now, f.next)
	// What was sent before the question and is not there has been lost.
	if f.kind == pollReply && f.next == ch.out.base && f.next < f.number && ch.out.base < ch.out.next {
		ch.out.rewind()
		ch.out.rto = minRTO
	}
	c.due = min(c.due, ch.out.timeoutAt)
	c.wake(ch)
}

// handleSegment takes a segment, if it is the one that is due.
func (c *Endpoint) handleSegment(now protocol.Time, ch *channel, f *frame) error {
	in := &ch.in
	if f.number > in.next && in.nackedAt != in.next+1 {
		in.nackedAt = in.next + 1 // once: a hole is followed by many segments
		c.replyToPoll(ch, f.number)
	}
	if f.number == in.next {
		message, complete, err := in.append(f, &c.config)
		if err != nil {
			return fmt.Errorf("%w: segment %d from rank %d does not go on where the last one ended", err, f.number, ch.peer)
		}
		if complete {
			c.inbox.Push(Message{ch.peer, message})
		}
	}
	switch {
	case in.unacked >= c.config.WindowBytes/4:
		ch.control.ack = true
		c.wake(ch)
	case ch.control.ackAt == protocol.Never:
		ch.control.ackAt = now + ackDelay
		c.due = min(c.due, ch.control.ackAt)
	}
	return nil
}

// replyToPoll tells a peer how far we have come.
func (c *Endpoint) replyToPoll(ch *channel, echo uint64) {
	ch.control.reply, ch.control.echo = true, echo
	c.wake(ch)
}
