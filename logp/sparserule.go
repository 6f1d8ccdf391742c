package logp

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// SparseRule is a correction that [Sparse] knows. The names are those of package
// broadcast, whose machines are what the rules are held to by test: they are
// written down a second time here because a machine that is asked for every
// message cannot be left out where nothing happens.
type SparseRule uint8

// The corrections.
const (
	SparseChecked SparseRule = iota
	SparseOpportunistic
	SparseOptimized
	SparseSafe
)

// maxDistance bounds the memory of a lockstep that nobody interrupts.
const maxDistance = 1 << 16

// rule is a correction on a ring of a size.
type rule struct {
	kind     SparseRule
	size     uint32
	distance uint32 // per side; of the opportunistic family
}

func newRule(kind SparseRule, distance protocol.Rank, size int) (rule, error) {
	if kind > SparseSafe {
		return rule{}, fmt.Errorf("logp: correction %d is unknown", kind)
	}
	if kind != SparseChecked && distance < 1 {
		return rule{}, fmt.Errorf("logp: opportunistic correction to distance %d corrects nothing", distance)
	}
	if kind == SparseOpportunistic && min(distance, protocol.Rank(size)) > maxDistance {
		return rule{}, fmt.Errorf("logp: opportunistic correction to distance %d: at most %d can be made use of", distance, maxDistance)
	}
	return rule{kind, uint32(size), uint32(min(distance, MaxSize))}, nil
}

// side is one of the two directions on the ring.
type side uint8

const (
	left side = iota
	right
)

func (s side) other() side { return 1 - s }

// stance is how far a process has got in correction: the distance it has sent
// to on each side, and the one from which on the side is finished.
type stance struct {
	sent, limit [2]uint32
	turn        side // whose turn it is; of checked
}

// begin is everybody's stance when correction starts.
func (r *rule) begin() stance {
	if r.kind == SparseChecked {
		return stance{limit: [2]uint32{r.size, r.size}}
	}
	return stance{limit: [2]uint32{
		left:  min(r.distance, (r.size-1)/2),
		right: min(r.distance, r.size/2),
	}}
}

// farthest is how far a message of a slot goes at most: one further than that of
// the slot before, but that the optimized rule may leave distances out.
func (r *rule) farthest(slot int) int {
	if r.kind == SparseOptimized {
		return max(slot+1, int(min(r.distance, r.size)))
	}
	return slot + 1
}

func (s *stance) finished(on side) bool { return s.sent[on] >= s.limit[on] }

// next decides a send. It is false when the process is done for good.
func (r *rule) next(s *stance) (b beat, ok bool) {
	to := right
	if r.kind == SparseChecked {
		to = s.turn
		if s.finished(to) {
			to = to.other()
		}
		if s.sent[left]+s.sent[right] >= r.size {
			return 0, false
		}
		s.turn = to.other()
	} else if s.finished(right) || !s.finished(left) && s.sent[left] < s.sent[right] {
		to = left
	}
	if s.finished(to) {
		return 0, false
	}
	s.sent[to]++
	b = beat(s.sent[to])
	if to == left {
		b = -b
	}
	return b, true
}

// hear takes a message.
func (r *rule) hear(s *stance, b beat) {
	from, distance := b.from(), b.distance()
	switch r.kind {
	case SparseChecked:
		s.limit[from] = min(s.limit[from], distance)
	case SparseOptimized:
		s.limit[from] = 0
		if o := from.other(); r.distance > distance {
			s.sent[o] = max(s.sent[o], r.distance-distance)
		}
	case SparseSafe:
		s.limit[from] = 0
	}
}
