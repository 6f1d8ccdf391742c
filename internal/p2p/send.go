package p2p

import "github.com/pleach-go/pleach/protocol"

// Next returns a frame to send, head followed by body. Both are valid until the next
// call.
func (e *Endpoint) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	e.tick(now)
	for e.ready.Len() > 0 {
		ch := *e.ready.At(0)
		if f, p, ok := e.frameFor(now, ch); ok {
			e.rotate()
			e.last, e.sent = ch, f.kind
			return ch.peer, e.write(ch, f, p), p.body, true
		}
		ch.ready = false
		e.ready.Pop()
	}
	return 0, nil, nil, false
}

// rotate moves the first channel to the end (round robin), so that a long message to
// one member does not delay others.
func (e *Endpoint) rotate() {
	if e.ready.Len() > 1 {
		e.ready.Push(e.ready.Pop())
	}
}

// frameFor returns the next frame to a peer: poll replies and polls first.
func (e *Endpoint) frameFor(now protocol.Time, ch *channel) (frame, segment, bool) {
	switch o := &ch.out; {
	case ch.control.reply:
		ch.control.reply = false
		return frame{kind: pollReply, number: ch.control.echo}, segment{}, true
	case ch.control.poll:
		ch.control.poll = false
		o.timeoutAt = now + o.rto
		o.rto = min(2*o.rto, maxRTO)
		e.due = min(e.due, o.timeoutAt)
		return frame{kind: poll, number: o.next}, segment{}, true
	case o.sendable(e.config.WindowBytes):
		p := *o.queue.At(int(o.next - o.base))
		f := frame{kind: data, number: o.next, first: p.first, last: p.last, length: p.length}
		o.next++
		o.inFlight += p.size()
		if o.timeoutAt == protocol.Never {
			o.armTimer(now)
			e.due = min(e.due, o.timeoutAt)
		}
		return f, p, true
	case ch.control.ack:
		return frame{kind: ack}, segment{}, true
	}
	return frame{}, segment{}, false
}

// write encodes a frame without the body of its segment. Every frame carries an
// acknowledgment.
func (e *Endpoint) write(ch *channel, f frame, p segment) []byte {
	f.from, f.to, f.next = e.incarnation, ch.incarnation, ch.in.next
	ch.control.ack, ch.control.ackAt, ch.in.unacked = false, protocol.Never, 0
	e.buffer = f.appendHead(e.buffer[:0])
	e.buffer = append(e.buffer, p.head...)
	return e.buffer
}

// SendFailed reports that the frame that Next returned last was not sent, because the
// transport's queue is full, so that Writable follows, or because the peer is down.
func (e *Endpoint) SendFailed(now protocol.Time, full bool) {
	ch := e.last
	if ch == nil || e.used(ch.peer) != ch {
		return
	}
	switch {
	case e.sent == data:
		ch.out.next--
		ch.out.inFlight -= ch.out.queue.At(int(ch.out.next - ch.out.base)).size()
		ch.out.blocked = true
	case e.sent == poll:
		// The timer polls again.
	default:
		ch.control.ackAt = now + ackDelay
		e.due = min(e.due, ch.control.ackAt)
	}
	if !full {
		// No event says when a peer that is down can be tried again.
		ch.out.timeoutAt = now + ch.out.rto
		e.due = min(e.due, ch.out.timeoutAt)
	}
}

// Deadline returns when Next must be called again without another event, or
// Never.
func (e *Endpoint) Deadline() protocol.Time { return e.due }

// tick handles the timers that are due.
func (e *Endpoint) tick(now protocol.Time) {
	if now < e.due {
		return
	}
	e.due = protocol.Never
	for _, ch := range e.channels {
		if ch == nil {
			continue
		}
		if ch.control.ackAt <= now {
			ch.control.ack, ch.control.ackAt = true, protocol.Never
			e.wake(ch)
		}
		if ch.out.timeoutAt <= now {
			ch.out.blocked, ch.out.timeoutAt = false, protocol.Never
			ch.control.poll = ch.out.queue.Len() > 0
			e.wake(ch)
		}
		e.due = min(e.due, ch.control.ackAt, ch.out.timeoutAt)
	}
}
