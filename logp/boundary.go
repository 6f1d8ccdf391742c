package logp

import "math/bits"

// boundaryProcess is a process next to a gap that is not done at the end of its
// script.
type boundaryProcess struct {
	progress
	position uint32
	late     bool // its message of the reaction has to wait
}

// boundary simulates the processes next to gaps: they are few, and their messages are
// followed one by one.
type boundary struct {
	scripted  [maxScripted][]sendEvent // scripted sends by slot, from lag on, in order of rank
	list      []boundaryProcess
	active    []uint32 // those not done, in order of rank
	listening bitmap   // where they are
	inbox     receiveQueue
	ports     []port32 // by position
	// Rounds are counted on from run to run, so that ports need not be cleared:
	// from base on, and by now up to busiest.
	base, busiest uint32
}

// sendEvent is a scripted send.
type sendEvent struct {
	position uint32
	offset   sendOffset
}

// port32 is a position's receive port.
type port32 struct {
	free    uint32 // first round, from base, in which it is free
	process uint32 // the boundary process at this position, if one is listening there
}

// playBoundary simulates what is not in lockstep: from slot lag on, until all are
// done.
func (s *stretch) playBoundary(slots int) {
	s.collect()
	f := &s.boundary
	slot := s.lag
	for i := range s.scripted {
		for _, c := range f.scripted[i] {
			s.send(slot, int(c.position), c.offset)
		}
		slot++
	}
	for ; len(f.active) > 0; slot++ {
		if slot >= slots {
			s.tally.unsettled = s.anyActiveInCore()
			break
		}
		for _, h := range f.inbox.take(slot) {
			s.rule.receive(&f.list[h.to].progress, h.offset)
		}
		s.playSlot(slot)
	}
	f.inbox.clear()
	f.base = f.busiest
	if f.base > 1<<30 {
		clear(f.ports)
		f.base, f.busiest = 0, 0
	}
}

// collect finds the colored processes with an uncolored neighbor, in order of rank,
// and gives them their scripts.
func (s *stretch) collect() {
	f := &s.boundary
	f.list, f.active = f.list[:0], f.active[:0]
	f.listening.clear()
	for k := range f.scripted {
		f.scripted[k] = f.scripted[k][:0]
	}
	middle := min(max(s.rank0, s.lo), s.hi)
	s.collectIn(middle, s.hi)
	s.collectIn(s.lo, middle)
}

func (s *stretch) collectIn(lo, hi int) {
	f := &s.boundary
	for w := lo >> 6; w<<6 < hi; w++ {
		at := w << 6
		word := s.colored.words[w] &^ (s.colored.fetch(at-1) & s.colored.fetch(at+1)) & within(w, lo, hi)
		for ; word != 0; word &= word - 1 {
			position := at + bits.TrailingZeros64(word)
			script := s.script(position)
			for i := range script.sends {
				c := &script.sends[i]
				f.scripted[c.slot] = append(f.scripted[c.slot], sendEvent{uint32(position), c.offset})
			}
			if script.done {
				continue
			}
			i := uint32(len(f.list))
			f.ports[position].process = i
			f.listening.set(position)
			f.list = append(f.list, boundaryProcess{progress: script.end, position: uint32(position)})
			f.active = append(f.active, i)
		}
	}
}

// playSlot has every boundary process receive its message of lockstep, then send.
func (s *stretch) playSlot(slot int) {
	f := &s.boundary
	sent := slot - s.lag // the slot whose messages are known now
	var b sendOffset
	inCommon, inReaction := sent < len(s.common), sent == s.lag && s.reacts
	switch {
	case inCommon:
		b = s.common[sent]
	case inReaction:
		b = s.reaction
	}
	n := 0
	for _, i := range f.active {
		p := &f.list[i]
		if inCommon && s.colored.has(b.sender(int(p.position))) ||
			inReaction && !p.late && s.senders(b.sender(int(p.position)), s.all)&1 != 0 {
			s.rule.receive(&p.progress, b)
		}
		own, ok := s.rule.next(&p.progress)
		if !ok {
			f.listening.remove(int(p.position))
			continue
		}
		f.active[n] = i
		n++
		s.send(slot, int(p.position), own)
	}
	f.active = f.active[:n]
}

// send follows one message. Ports serve messages in the order in which they
// were sent, lower ranks first, so it is clear at once when this one will be
// received.
func (s *stretch) send(slot, from int, b sendOffset) {
	own := from >= s.first && from < s.last
	if own {
		s.tally.messages++
		s.tally.sent = slot
		s.tally.ended = max(s.tally.ended, slot-1)
	}
	to := s.land(b.target(from))
	if s.dead.has(to) {
		return
	}
	if s.uncolored.has(to) {
		s.uncolored.remove(to)
		s.tally.colored = slot
	}
	round := slot
	if !s.free {
		round = s.queue(slot, from, to, own)
	}
	if own {
		s.tally.ended = max(s.tally.ended, round)
	}
	if s.boundary.listening.has(to) {
		s.boundary.inbox.add(slot, round+s.lag, arrival{s.boundary.ports[to].process, b})
	}
}

// queue takes the first free round of a port.
func (s *stretch) queue(slot, from, to int, own bool) (round int) {
	port := &s.boundary.ports[to]
	now := s.boundary.base + uint32(slot)
	taken := max(now, port.free)
	first := false // received before a message of the reaction
	if slot == s.lag && s.reacts {
		if rival := s.reaction.sender(to); s.senders(rival, s.all)&1 != 0 {
			taken = now + 1
			first = s.precedes(from, s.land(rival))
		}
	}
	port.free = taken + 1
	s.boundary.busiest = max(s.boundary.busiest, port.free)
	if first {
		s.delay(slot, to, own)
		taken = now
	}
	return int(taken - s.boundary.base)
}

// delay has the message of the reaction to a port received one round late.
func (s *stretch) delay(slot, to int, own bool) {
	if own {
		s.tally.ended = max(s.tally.ended, slot+1)
	}
	if s.boundary.listening.has(to) {
		i := s.boundary.ports[to].process
		s.boundary.list[i].late = true
		s.boundary.inbox.add(slot, slot+1+s.lag, arrival{i, s.reaction})
	}
}

// land is where a message to a position arrives: across the seam of the ring. The
// ends of a piece have no seam, but nothing there is right anyway.
func (s *stretch) land(position int) int {
	switch {
	case position < s.lo:
		return position + s.hi - s.lo
	case position >= s.hi:
		return position - s.hi + s.lo
	default:
		return position
	}
}

func (s *stretch) anyActiveInCore() bool {
	for _, i := range s.boundary.active {
		if p := int(s.boundary.list[i].position); p >= s.first && p < s.last {
			return true
		}
	}
	return false
}
