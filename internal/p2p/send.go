package p2p

import "github.com/pleach-go/pleach/protocol"

// Next returns a frame to send, a head and a body behind it, valid until the next
// call.
func (c *Endpoint) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	c.tick(now)
	for c.ready.Len() > 0 {
		ch := *c.ready.At(0)
		if f, p, ok := c.frameFor(now, ch); ok {
			c.rotate()
			c.last, c.sent = ch, f.kind
			return ch.peer, c.write(ch, f, p), p.body, true
		}
		ch.ready = false
		c.ready.Pop()
	}
	return 0, nil, nil, false
}

// rotate puts the first channel last, so that a long message to one member does not
// hold up others.
func (c *Endpoint) rotate() {
	if c.ready.Len() > 1 {
		c.ready.Push(c.ready.Pop())
	}
}

// frameFor decides what goes to a peer next: answers and questions first.
func (c *Endpoint) frameFor(now protocol.Time, ch *channel) (frame, segment, bool) {
	switch o := &ch.out; {
	case ch.control.reply:
		ch.control.reply = false
		return frame{kind: pollReply, number: ch.control.echo}, segment{}, true
	case ch.control.poll:
		ch.control.poll = false
		o.timeoutAt = now + o.rto
		o.rto = min(2*o.rto, maxRTO)
		c.due = min(c.due, o.timeoutAt)
		return frame{kind: poll, number: o.next}, segment{}, true
	case o.sendable(c.config.WindowBytes):
		p := *o.queue.At(int(o.next - o.base))
		f := frame{kind: data, number: o.next, first: p.first, last: p.last, length: p.length}
		o.next++
		o.inFlight += p.size()
		if o.timeoutAt == protocol.Never {
			o.armTimer(now)
			c.due = min(c.due, o.timeoutAt)
		}
		return f, p, true
	case ch.control.ack:
		return frame{kind: ack}, segment{}, true
	}
	return frame{}, segment{}, false
}

// write makes the frame's bytes, but for a piece's body. It tells the peer how far
// we have come, as every frame does.
func (c *Endpoint) write(ch *channel, f frame, p segment) []byte {
	f.from, f.to, f.next = c.config.Session, ch.session, ch.in.next
	ch.control.ack, ch.control.ackAt, ch.in.unacked = false, protocol.Never, 0
	c.buffer = f.appendHead(c.buffer[:0])
	c.buffer = append(c.buffer, p.head...)
	return c.buffer
}

// SendFailed says that the frame Next returned last was not sent: because the peer's
// queue is full, so that Room follows, or because it is down.
func (c *Endpoint) SendFailed(now protocol.Time, full bool) {
	ch := c.last
	if ch == nil || c.channel(ch.peer) != ch {
		return
	}
	switch {
	case c.sent == data:
		ch.out.next--
		ch.out.inFlight -= ch.out.queue.At(int(ch.out.next - ch.out.base)).size()
		ch.out.blocked = true
	case c.sent == poll:
		// It is asked again, later.
	default:
		ch.control.ackAt = now + ackDelay
		c.due = min(c.due, ch.control.ackAt)
	}
	if !full {
		// Nobody says when a peer that is down can be tried again.
		ch.out.timeoutAt = now + ch.out.rto
		c.due = min(c.due, ch.out.timeoutAt)
	}
}

// Deadline is when Next must be called again though nothing has happened, or
// Never.
func (c *Endpoint) Deadline() protocol.Time { return c.due }

// tick does what is due.
func (c *Endpoint) tick(now protocol.Time) {
	if now < c.due {
		return
	}
	c.due = protocol.Never
	for _, ch := range c.channels {
		if ch == nil {
			continue
		}
		if ch.control.ackAt <= now {
			ch.control.ack, ch.control.ackAt = true, protocol.Never
			c.wake(ch)
		}
		if ch.out.timeoutAt <= now {
			ch.out.blocked, ch.out.timeoutAt = false, protocol.Never
			ch.control.poll = ch.out.queue.Len() > 0
			c.wake(ch)
		}
		c.due = min(c.due, ch.control.ackAt, ch.out.timeoutAt)
	}
}
