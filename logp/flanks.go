package logp

import "math/bits"

// flank is a process beside a gap that is not through with its script when that
// ends.
type flank struct {
	stance
	position uint32
	late     bool // the chorus' message to it has to wait
}

// flanks is what playing those beside gaps takes: they are few, and their
// messages are followed one by one.
type flanks struct {
	calls     [maxScripted][]cue // scripted sends by slot, from deaf on, in order of rank
	list      []flank
	active    []uint32 // those not done, in order of rank
	listening bitmap   // where they are
	heard     agenda
	ports     []port32 // by position
	// Rounds are counted on from run to run, so that ports need not be cleared:
	// from base on, and by now up to busiest.
	base, busiest uint32
}

// cue is a scripted send.
type cue struct {
	position uint32
	beat     beat
}

// port32 is a position's receive port.
type port32 struct {
	free  uint32 // first round, from base, in which it is free
	flank uint32 // the flank at this position, if one is listening there
}

// playFlanks plays what is not in lockstep: from slot deaf on, until all are
// done.
func (s *stretch) playFlanks(slots int) {
	s.muster()
	f := &s.flanks
	slot := s.deaf
	for turn := range s.scripted {
		for _, c := range f.calls[turn] {
			s.send(slot, int(c.position), c.beat)
		}
		slot++
	}
	for ; len(f.active) > 0; slot++ {
		if slot >= slots {
			s.tally.unsettled = s.anyActiveInCore()
			break
		}
		for _, h := range f.heard.take(slot) {
			s.rule.hear(&f.list[h.flank].stance, h.beat)
		}
		s.playSlot(slot)
	}
	f.heard.clear()
	f.base = f.busiest
	if f.base > 1<<30 {
		clear(f.ports)
		f.base, f.busiest = 0, 0
	}
}

// muster gives their scripts to the colored with an uncolored neighbor, in order
// of rank.
func (s *stretch) muster() {
	f := &s.flanks
	f.list, f.active = f.list[:0], f.active[:0]
	f.listening.clear()
	for k := range f.calls {
		f.calls[k] = f.calls[k][:0]
	}
	middle := min(max(s.rank0, s.lo), s.hi)
	s.musterIn(middle, s.hi)
	s.musterIn(s.lo, middle)
}

func (s *stretch) musterIn(lo, hi int) {
	f := &s.flanks
	for w := lo >> 6; w<<6 < hi; w++ {
		at := w << 6
		word := s.colored.words[w] &^ (s.colored.fetch(at-1) & s.colored.fetch(at+1)) & within(w, lo, hi)
		for ; word != 0; word &= word - 1 {
			position := at + bits.TrailingZeros64(word)
			script := s.script(position)
			for i := range script.calls {
				c := &script.calls[i]
				f.calls[c.turn] = append(f.calls[c.turn], cue{uint32(position), c.beat})
			}
			if script.done {
				continue
			}
			i := uint32(len(f.list))
			f.ports[position].flank = i
			f.listening.set(position)
			f.list = append(f.list, flank{stance: script.finale, position: uint32(position)})
			f.active = append(f.active, i)
		}
	}
}

// playSlot lets every flank hear what lockstep has for it, then send.
func (s *stretch) playSlot(slot int) {
	f := &s.flanks
	sent := slot - s.deaf // the slot whose messages can be heard now
	var b beat
	inBeat, inChorus := sent < len(s.beats), sent == s.deaf && s.sings
	switch {
	case inBeat:
		b = s.beats[sent]
	case inChorus:
		b = s.chorus
	}
	n := 0
	for _, i := range f.active {
		p := &f.list[i]
		if inBeat && s.colored.has(b.sender(int(p.position))) ||
			inChorus && !p.late && s.voices(b.sender(int(p.position)), s.all)&1 != 0 {
			s.rule.hear(&p.stance, b)
		}
		own, ok := s.rule.next(&p.stance)
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
func (s *stretch) send(slot, from int, b beat) {
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
	if s.flanks.listening.has(to) {
		s.flanks.heard.add(slot, round+s.deaf, hearing{s.flanks.ports[to].flank, b})
	}
}

// queue takes the first free round of a port.
func (s *stretch) queue(slot, from, to int, own bool) (round int) {
	port := &s.flanks.ports[to]
	now := s.flanks.base + uint32(slot)
	taken := max(now, port.free)
	first := false // before a message of the chorus
	if slot == s.deaf && s.sings {
		if rival := s.chorus.sender(to); s.voices(rival, s.all)&1 != 0 {
			taken = now + 1
			first = s.lead(from, s.land(rival))
		}
	}
	port.free = taken + 1
	s.flanks.busiest = max(s.flanks.busiest, port.free)
	if first {
		s.delay(slot, to, own)
		taken = now
	}
	return int(taken - s.flanks.base)
}

// delay lets the chorus' message to a port be received one round late.
func (s *stretch) delay(slot, to int, own bool) {
	if own {
		s.tally.ended = max(s.tally.ended, slot+1)
	}
	if s.flanks.listening.has(to) {
		i := s.flanks.ports[to].flank
		s.flanks.list[i].late = true
		s.flanks.heard.add(slot, slot+1+s.deaf, hearing{i, s.chorus})
	}
}

// land is where a message to a position ends up: across the seam. Of a piece the
// two ends have no seam, but nothing there is right anyway.
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
	for _, i := range s.flanks.active {
		if p := int(s.flanks.list[i].position); p >= s.first && p < s.last {
			return true
		}
	}
	return false
}
