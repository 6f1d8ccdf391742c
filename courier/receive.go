package courier

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// ReceiveBuffer returns where all of a long frame belongs but its first bytes, the head:
// behind what has come of its message. Nil: nowhere.
//
// What is written there does not matter before Receive: the message ends before it.
func (c *Courier) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	f, err := parse(head)
	ch := c.channel(from)
	if err != nil || f.kind != segment || ch == nil || ch.session != f.from || f.number != ch.in.next {
		return nil
	}
	return ch.in.place(&f, size-len(head), &c.config)
}

// Receive takes a frame, [Mark] included: a head, and a body behind it, if it was
// placed. An error says that it made no sense.
func (c *Courier) Receive(now protocol.Time, from protocol.Rank, head, body []byte) error {
	f, err := parse(head)
	if err != nil {
		return fmt.Errorf("%w, from rank %d", err, from)
	}
	f.placed = body
	ch := c.channel(from)
	if ch == nil || !c.current(ch, &f) {
		return nil // of or for somebody who is not there any more, or not yet
	}
	if f.to == c.config.Session {
		c.heard(now, ch, &f)
	}
	switch f.kind {
	case segment:
		return c.take(now, ch, &f)
	case ask:
		c.answer(ch, f.number)
	}
	return nil
}

// current reports whether a frame is between the two sessions that there are now.
func (c *Courier) current(ch *channel, f *frame) bool {
	if f.to != 0 && f.to != c.config.Session || f.from <= c.former[ch.peer] {
		return false
	}
	if ch.session == 0 {
		ch.session = f.from
	}
	return ch.session == f.from
}

// heard takes in how far the peer has come.
func (c *Courier) heard(now protocol.Time, ch *channel, f *frame) {
	ch.out.arrived(now, f.next)
	// What was sent before the question and is not there has been lost.
	if f.kind == answer && f.next == ch.out.base && f.next < f.number && ch.out.base < ch.out.next {
		ch.out.rewind()
		ch.out.patience = firstAsk
	}
	c.due = min(c.due, ch.out.askAt)
	c.wake(ch)
}

// take takes a segment, if it is the one that is due.
func (c *Courier) take(now protocol.Time, ch *channel, f *frame) error {
	in := &ch.in
	if f.number > in.next && in.holed != in.next+1 {
		in.holed = in.next + 1 // once: a hole is followed by many segments
		c.answer(ch, f.number)
	}
	if f.number == in.next {
		message, complete, err := in.take(f, &c.config)
		if err != nil {
			return fmt.Errorf("%w: segment %d from rank %d does not go on where the last one ended", err, f.number, ch.peer)
		}
		if complete {
			c.inbox.push(Message{ch.peer, message})
		}
	}
	switch {
	case in.unacked >= c.config.WindowBytes/4:
		ch.tell.ack = true
		c.wake(ch)
	case ch.tell.ackAt == protocol.Never:
		ch.tell.ackAt = now + ackDelay
		c.due = min(c.due, ch.tell.ackAt)
	}
	return nil
}

// answer tells a peer how far we have come.
func (c *Courier) answer(ch *channel, echo uint64) {
	ch.tell.answer, ch.tell.echo = true, echo
	c.wake(ch)
}
