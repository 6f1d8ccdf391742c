package logp

import "math/bits"

// stretch is a piece of the ring, or all of it, in which correction is simulated in
// memory of its own.
//
// Positions in it count from the left. Processes in lo … hi−1 are simulated. Beyond
// both sides is a margin, of which only the colors are known. On a whole ring the
// margins repeat the other end. On a piece, the simulation is wrong near the ends, as
// messages from outside are missing. So only the core is counted, and the halo around
// it is as wide as an error can spread in time ([Sparse.slots]).
type stretch struct {
	rule *rule
	lockstep
	free bool // receives never wait

	colored, dead bitmap // by the tree; margins included
	uncolored     bitmap // live and not yet reached; of the core
	lo, hi        int
	first, last   int // the core is first … last−1
	rank0         int // where rank 0 of the group is: sends of lower ranks are received first

	boundary boundary
	tally    tally
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
	unsettled bool // a process is not done in the time given
}

// nothing is the round and the slot of nothing.
const nothing = -2

// play simulates correction, in at most that many slots.
func (s *stretch) play(slots int) tally {
	s.tally = tally{colored: nothing, ended: nothing, sent: nothing}
	s.findUncolored()
	colored := s.count(true)
	for slot, b := range s.common {
		s.sendAll(slot, b, true, colored)
	}
	if s.reacts {
		reacting := colored
		if !s.all {
			reacting = s.count(false)
		}
		s.sendAll(s.lag, s.reaction, s.all, reacting)
	}
	if !s.over {
		s.playBoundary(slots)
	}
	for w := s.first >> 6; w<<6 < s.last; w++ {
		s.tally.unreached += bits.OnesCount64(s.uncolored.words[w])
	}
	return s.tally
}

// findUncolored finds the live processes of the core that the tree did not reach.
func (s *stretch) findUncolored() {
	s.uncolored.clear()
	for w := s.first >> 6; w<<6 < s.last; w++ {
		s.uncolored.words[w] = ^(s.colored.words[w] | s.dead.words[w]) & within(w, s.first, s.last)
	}
}

// sendAll has all colored processes, or those that react, send in one slot. There are
// so many senders in the core; messages into the core may also come from its neighbors.
func (s *stretch) sendAll(slot int, b sendOffset, all bool, senders int) {
	for w := s.first >> 6; w<<6 < s.last; w++ {
		if open := s.uncolored.words[w]; open != 0 {
			if reached := open & s.senders(b.sender(w<<6), all); reached != 0 {
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

// count is how many processes of the core send.
func (s *stretch) count(all bool) (senders int) {
	for w := s.first >> 6; w<<6 < s.last; w++ {
		senders += bits.OnesCount64(s.senders(w<<6, all) & within(w, s.first, s.last))
	}
	return senders
}

// anyReceived reports whether any of them sends to a live process.
func (s *stretch) anyReceived(b sendOffset, all bool) bool {
	for w := s.first >> 6; w<<6 < s.last; w++ {
		if s.senders(w<<6, all)&within(w, s.first, s.last)&^s.dead.fetch(b.target(w<<6)) != 0 {
			return true
		}
	}
	return false
}

// senders are, of the 64 processes from a position on, the colored ones. If not all
// are asked for, they also have the neighbor whose first common send reaches them.
func (s *stretch) senders(at int, all bool) uint64 {
	word := s.colored.fetch(at)
	if !all {
		word &= s.colored.fetch(s.common[0].sender(at))
	}
	return word
}

// precedes reports whether the sends of one position come before those of another
// in the same slot.
func (s *stretch) precedes(a, b int) bool {
	if (a < s.rank0) != (b < s.rank0) {
		return a >= s.rank0
	}
	return a < b
}
