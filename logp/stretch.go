package logp

import "math/bits"

// stretch is a piece of the ring, or all of it, in which correction is played
// out in memory of its own.
//
// Positions in it count from the left. Processes in lo … hi−1 are played; to
// both sides there is a margin, of which only who is colored is known. On a
// whole ring the margins repeat the other end. On a piece, what is played near
// its ends is wrong, as messages from outside are missing. So only the core is
// counted, and the rest is as wide as anything wrong can get in time
// ([Sparse.slots]).
type stretch struct {
	rule *rule
	lockstep
	free bool // receives never wait

	colored, dead bitmap // by the tree; margins included
	uncolored     bitmap // live and not yet reached; of the core
	lo, hi        int
	first, last   int // the core is first … last−1
	rank0         int // where rank 0 of the group is: sends of lower ranks are received first

	flanks flanks
	tally  tally
}

// tally is what is counted in a core. Rounds are receives as slots are sends: a
// message of slot k is received in round k, or later if it has to wait. Losing
// one ends an overhead earlier, as a receive in the round before.
type tally struct {
	messages  int64
	colored   int // round in which the last process was colored
	ended     int // last round
	sent      int // last slot
	unreached int
	unsettled bool // somebody is not done in the time given
}

// nothing is the round and the slot of nothing.
const nothing = -2

// play plays correction, in at most that many slots.
func (s *stretch) play(slots int) tally {
	s.tally = tally{colored: nothing, ended: nothing, sent: nothing}
	s.expose()
	everybody := s.count(true)
	for slot, b := range s.beats {
		s.strike(slot, b, true, everybody)
	}
	if s.sings {
		singers := everybody
		if !s.all {
			singers = s.count(false)
		}
		s.strike(s.deaf, s.chorus, s.all, singers)
	}
	if !s.over {
		s.playFlanks(slots)
	}
	for w := s.first >> 6; w<<6 < s.last; w++ {
		s.tally.unreached += bits.OnesCount64(s.uncolored.words[w])
	}
	return s.tally
}

// expose notes who of the core lives and was not reached by the tree.
func (s *stretch) expose() {
	s.uncolored.clear()
	for w := s.first >> 6; w<<6 < s.last; w++ {
		s.uncolored.words[w] = ^(s.colored.words[w] | s.dead.words[w]) & within(w, s.first, s.last)
	}
}

// strike lets all the colored, or those of the chorus, send in one slot. There
// are that many of them in the core; what they reach there may also come from
// beside it.
func (s *stretch) strike(slot int, b beat, all bool, senders int) {
	for w := s.first >> 6; w<<6 < s.last; w++ {
		if open := s.uncolored.words[w]; open != 0 {
			if reached := open & s.voices(b.sender(w<<6), all); reached != 0 {
				s.uncolored.words[w] = open &^ reached
				s.tally.colored = slot
			}
		}
	}
	if senders == 0 {
		return
	}
	s.tally.messages += int64(senders)
	s.tally.sent, s.tally.ended = slot, max(s.tally.ended, slot-1)
	if s.anyReceived(b, all) {
		s.tally.ended = slot
	}
}

// count is how many of the core send.
func (s *stretch) count(all bool) (senders int) {
	for w := s.first >> 6; w<<6 < s.last; w++ {
		senders += bits.OnesCount64(s.voices(w<<6, all) & within(w, s.first, s.last))
	}
	return senders
}

// anyReceived reports whether any of them sends to a live process.
func (s *stretch) anyReceived(b beat, all bool) bool {
	for w := s.first >> 6; w<<6 < s.last; w++ {
		if s.voices(w<<6, all)&within(w, s.first, s.last)&^s.dead.fetch(b.target(w<<6)) != 0 {
			return true
		}
	}
	return false
}

// voices are those of the 64 processes from a position on who are colored and,
// if not all are asked for, have the neighbor that sends them the first beat.
func (s *stretch) voices(at int, all bool) uint64 {
	word := s.colored.fetch(at)
	if !all {
		word &= s.colored.fetch(s.beats[0].sender(at))
	}
	return word
}

// lead reports whether the sends of one position come before those of another
// in the same slot.
func (s *stretch) lead(a, b int) bool {
	if (a < s.rank0) != (b < s.rank0) {
		return a >= s.rank0
	}
	return a < b
}
