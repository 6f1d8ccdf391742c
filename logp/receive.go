package logp

import "github.com/pleach-go/pleach/protocol"

// Receiving: which message gets a receive port at an instant, and what happens then.
//
// A message sent at s can end its receive at s + 2o + L at the earliest, so all
// candidates for an uncontended receive ending now were sent in one step. Only
// where two messages want one port does one wait; that is kept apart.

// receive ends every receive that is due now.
func (s *Simulator[B]) receive(now protocol.Time) {
	if sent := now - s.params.Hop(); sent >= 0 {
		step := s.flights.at(sent)
		if step.queued && !s.params.FreeReceive {
			s.receiveByDecision(now, step.flights)
		} else {
			s.receiveInTurn(now, step.flights)
		}
		s.flights.close(step)
	}
	s.serveWaiting(now)
}

// receiveInTurn ends the receives of messages that were decided as they were
// sent: the order of the list is the order in which they go first.
func (s *Simulator[B]) receiveInTurn(now protocol.Time, batch []flight[B]) {
	arrived := int32(now - s.params.O)
	for i := range batch {
		f := &batch[i]
		if f.to == noReceiver {
			continue
		}
		p := &s.ports[f.to]
		switch {
		case p.dies <= arrived:
			s.lose(now, f)
		case p.flags&waiting == 0 && p.recvFree <= arrived || s.params.FreeReceive:
			p.recvFree = int32(now)
			s.deliver(now, f, p)
		default:
			s.wait(p, f)
		}
	}
}

// receiveByDecision ends the receives of messages some of which were decided
// earlier than others, so that the later in the list may go first.
func (s *Simulator[B]) receiveByDecision(now protocol.Time, batch []flight[B]) {
	s.claim(now, batch)
	for i := range batch {
		f := &batch[i]
		if f.to == noReceiver {
			continue
		}
		if p := &s.ports[f.to]; p.recvFree == int32(now) && s.extras[f.to].claim == int32(i) {
			s.deliver(now, f, p)
		}
	}
}

// claim gives each free port to the message that was decided first among those
// that arrived together, and lets the others wait.
func (s *Simulator[B]) claim(now protocol.Time, batch []flight[B]) {
	arrived := int32(now - s.params.O)
	for i := range batch {
		f := &batch[i]
		if f.to == noReceiver {
			continue
		}
		p, claim := &s.ports[f.to], &s.extras[f.to].claim
		switch {
		case p.dies <= arrived:
			s.lose(now, f)
		case p.flags&waiting == 0 && p.recvFree <= arrived:
			p.recvFree, *claim = int32(now), int32(i)
		case p.flags&waiting == 0 && p.recvFree == int32(now) && before(f, &batch[*claim]):
			s.wait(p, &batch[*claim])
			*claim = int32(i)
		default:
			s.wait(p, f)
		}
	}
}

// wait queues a message for a busy port, and sees to it that the port is
// looked at when the receive after the current one ends.
func (s *Simulator[B]) wait(p *port[B], f *flight[B]) {
	if p.flags&waiting == 0 {
		p.flags |= waiting
		s.contended.watch(f.to, protocol.Time(p.recvFree)+s.params.O)
	}
	s.contended.push(&s.extras[f.to].queue, f)
}

// serveWaiting ends the receives of contended ports that are due now.
func (s *Simulator[B]) serveWaiting(now protocol.Time) {
	for _, to := range s.contended.take(now) {
		p := &s.ports[to]
		queue := &s.extras[to].queue
		f := s.contended.pop(queue)
		p.recvFree = int32(now)
		if *queue == none {
			p.flags &^= waiting
		} else {
			s.contended.watch(to, now+s.params.O)
		}
		if p.dies <= int32(now-s.params.O) {
			s.lose(now, &f)
		} else {
			s.deliver(now, &f, p)
		}
	}
}

// deliver hands a message to its machine at the end of the receive.
func (s *Simulator[B]) deliver(now protocol.Time, f *flight[B], p *port[B]) {
	s.result.Quiescence = now
	if p.dies <= int32(now) {
		return // died while receiving
	}
	to := int(f.to)
	if s.Trace != nil {
		s.Trace(Event{now, Received, protocol.Rank(to), protocol.Rank(f.from), f.phase.String()})
	}
	if p.flags&(complete|done) == complete|done {
		return // it never sends again and has its result: nothing left to learn
	}
	s.message.From, s.message.Phase, s.message.Body = protocol.Rank(f.from), f.phase, f.body
	p.machine.Receive(now, &s.message)
	if p.flags&complete == 0 && p.machine.Complete() {
		s.complete(now, f, p)
	}
	if p.flags&done == 0 && p.sendFree <= int32(now) {
		s.due.set(to)
	}
}

// complete notes that a process has got the message.
func (s *Simulator[B]) complete(now protocol.Time, f *flight[B], p *port[B]) {
	p.flags |= complete
	s.result.Coloring = now
	if f.phase == protocol.Dissemination {
		s.colored.set(int(f.to))
	}
	if s.Trace != nil {
		s.Trace(Event{now, Colored, protocol.Rank(f.to), protocol.Rank(f.from), f.phase.String()})
	}
}

// lose lets a message to a dead process end: it was under way until it arrived.
func (s *Simulator[B]) lose(now protocol.Time, f *flight[B]) {
	s.result.Quiescence = max(s.result.Quiescence, now-s.params.O)
	if s.Trace != nil {
		s.Trace(Event{now - s.params.O, Lost, protocol.Rank(f.to), protocol.Rank(f.from), f.phase.String()})
	}
}
