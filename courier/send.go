package courier

import "github.com/pleach-go/pleach/protocol"

// Next returns a frame to send, a head and a body behind it, valid until the next
// call.
func (c *Courier) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	c.tick(now)
	for c.ready.len() > 0 {
		ch := *c.ready.at(0)
		if f, p, ok := c.frameFor(now, ch); ok {
			c.turn()
			c.last, c.sent = ch, f.kind
			return ch.peer, c.write(ch, f, p), p.body, true
		}
		ch.ready = false
		c.ready.pop()
	}
	return 0, nil, nil, false
}

// turn puts the first channel last, so that a long message to one member does not
// hold up others.
func (c *Courier) turn() {
	if c.ready.len() > 1 {
		c.ready.push(c.ready.pop())
	}
}

// frameFor decides what goes to a peer next: answers and questions first.
func (c *Courier) frameFor(now protocol.Time, ch *channel) (frame, piece, bool) {
	switch o := &ch.out; {
	case ch.tell.answer:
		ch.tell.answer = false
		return frame{kind: answer, number: ch.tell.echo}, piece{}, true
	case ch.tell.ask:
		ch.tell.ask = false
		o.askAt = now + o.patience
		o.patience = min(2*o.patience, lastAsk)
		c.due = min(c.due, o.askAt)
		return frame{kind: ask, number: o.next}, piece{}, true
	case o.sendable(c.config.WindowBytes):
		p := *o.queue.at(int(o.next - o.base))
		f := frame{kind: segment, number: o.next, first: p.first, last: p.last, length: p.length}
		o.next++
		o.flying += p.size()
		if o.askAt == protocol.Never {
			o.expect(now)
			c.due = min(c.due, o.askAt)
		}
		return f, p, true
	case ch.tell.ack:
		return frame{kind: ack}, piece{}, true
	}
	return frame{}, piece{}, false
}

// write makes the frame's bytes, but for a piece's body. It tells the peer how far
// we have come, as every frame does.
func (c *Courier) write(ch *channel, f frame, p piece) []byte {
	f.from, f.to, f.next = c.config.Session, ch.session, ch.in.next
	ch.tell.ack, ch.tell.ackAt, ch.in.unacked = false, protocol.Never, 0
	c.buffer = f.appendHead(c.buffer[:0])
	c.buffer = append(c.buffer, p.head...)
	return c.buffer
}

// SendFailed says that the frame Next returned last was not sent: because the peer's
// queue is full, so that Room follows, or because it is down.
func (c *Courier) SendFailed(now protocol.Time, full bool) {
	ch := c.last
	if ch == nil || c.channel(ch.peer) != ch {
		return
	}
	switch {
	case c.sent == segment:
		ch.out.next--
		ch.out.flying -= ch.out.queue.at(int(ch.out.next - ch.out.base)).size()
		ch.out.stuck = true
	case c.sent == ask:
		// It is asked again, later.
	default:
		ch.tell.ackAt = now + ackDelay
		c.due = min(c.due, ch.tell.ackAt)
	}
	if !full {
		// Nobody says when a peer that is down can be tried again.
		ch.out.askAt = now + ch.out.patience
		c.due = min(c.due, ch.out.askAt)
	}
}

// Deadline is when Next must be called again though nothing has happened, or
// Never.
func (c *Courier) Deadline() protocol.Time { return c.due }

// tick does what is due.
func (c *Courier) tick(now protocol.Time) {
	if now < c.due {
		return
	}
	c.due = protocol.Never
	for _, ch := range c.channels {
		if ch == nil {
			continue
		}
		if ch.tell.ackAt <= now {
			ch.tell.ack, ch.tell.ackAt = true, protocol.Never
			c.wake(ch)
		}
		if ch.out.askAt <= now {
			ch.out.stuck, ch.out.askAt = false, protocol.Never
			ch.tell.ask = ch.out.queue.len() > 0
			c.wake(ch)
		}
		c.due = min(c.due, ch.tell.ackAt, ch.out.askAt)
	}
}
