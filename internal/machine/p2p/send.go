package p2p

import "github.com/pleach-go/pleach/protocol"

// Next returns a frame to send, head followed by body. Both are valid until the next
// call.
func (e *Endpoint) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	if now >= e.due {
		e.tick(now)
	}
	for e.ready.Len() > 0 {
		ch := *e.ready.At(0)
		var f frame
		if p := e.frameFor(now, ch, &f); p != nil {
			e.ready.Push(e.ready.Pop()) // round robin: a long message delays no other member's
			e.last, e.sent = ch, f.kind
			return ch.peer, e.write(ch, &f, p), p.body, true
		}
		ch.ready = false
		e.ready.Pop()
	}
	return 0, nil, nil, false
}

// frameFor makes the next frame to a peer: poll replies and polls first. It returns what the
// frame carries, or nil if there is no frame.
func (e *Endpoint) frameFor(now protocol.Time, ch *channel, f *frame) *segment {
	switch o := &ch.out; {
	case ch.control.reply:
		ch.control.reply = false
		f.kind, f.number = pollReply, ch.control.echo
		return &e.none
	case ch.control.poll:
		ch.control.poll = false
		o.timeoutAt = now + o.rto
		o.rto = min(2*o.rto, maxRTO)
		e.due = min(e.due, o.timeoutAt)
		f.kind, f.number = poll, o.next
		return &e.none
	case o.sendable(e.config.WindowBytes):
		p := o.queue.At(int(o.next - o.base))
		f.kind, f.number = data, o.next
		f.first, f.last, f.length = p.first, p.last, p.length
		o.roundTrip.start(o.next, now)
		o.next++
		o.inFlight += p.size()
		if o.timeoutAt == protocol.Never {
			o.armTimer(now)
			e.due = min(e.due, o.timeoutAt)
		}
		return p
	case ch.control.ack:
		f.kind = ack
		return &e.none
	}
	return nil
}

// write encodes a frame without the body of its segment. Every frame carries an
// acknowledgment.
func (e *Endpoint) write(ch *channel, f *frame, p *segment) []byte {
	f.from, f.to, f.next = e.incarnation, ch.incarnation, ch.in.next
	ch.control.ack, ch.control.ackAt, ch.in.unacked = false, protocol.Never, 0
	e.buffer = f.appendHead(e.buffer[:0])
	e.buffer = append(e.buffer, p.head...)
	return e.buffer
}

// SendFailed reports that the frame that Next returned last was not sent, because the
// transport's queue is full, so that Writable follows, or because the peer is down. The timer
// tries again in any case.
func (e *Endpoint) SendFailed(now protocol.Time, _ bool) {
	ch := e.last
	if ch == nil || e.used(ch.peer) != ch {
		return
	}
	switch {
	case e.sent == data:
		ch.out.next--
		ch.out.inFlight -= ch.out.queue.At(int(ch.out.next - ch.out.base)).size()
		ch.out.blocked = true
		ch.out.roundTrip.discard()
	case e.sent == poll:
		// The timer polls again.
	default:
		ch.control.ackAt = now + ackDelay
		e.due = min(e.due, ch.control.ackAt)
	}
}

// Deadline returns when Next must be called again without another event, or
// Never.
func (e *Endpoint) Deadline() protocol.Time { return e.due }

// tick handles the timers that are due.
func (e *Endpoint) tick(now protocol.Time) {
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
