package logp

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// SparseRule is a correction that [Sparse] knows. The names are those of package
// broadcast. Tests compare the rules with its machines. They are written down a
// second time here because a machine has to be asked for every message, also where
// nothing happens.
type SparseRule uint8

// The corrections.
const (
	SparseChecked SparseRule = iota
	SparseOpportunistic
	SparseOptimized
	SparseSafe
)

// maxDistance bounds the memory of a lockstep that no message interrupts.
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
		return rule{}, fmt.Errorf("logp: opportunistic correction to distance %d: at most %d can be made use of", distance,
			maxDistance)
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

// progress is how far a process has got in correction: the distance it has sent
// to on each side, and the one from which on the side is finished.
type progress struct {
	sent, limit [2]uint32
	next        side // of checked correction: the side of the next send
}

// begin is the progress of all processes when correction starts.
func (r *rule) begin() progress {
	if r.kind == SparseChecked {
		return progress{limit: [2]uint32{r.size, r.size}}
	}
	return progress{limit: [2]uint32{
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

func (p *progress) finished(on side) bool { return p.sent[on] >= p.limit[on] }

// next decides a send. It is false when the process is done for good.
func (r *rule) next(p *progress) (b sendOffset, ok bool) {
	to := right
	if r.kind == SparseChecked {
		to = p.next
		if p.finished(to) {
			to = to.other()
		}
		if p.sent[left]+p.sent[right] >= r.size {
			return 0, false
		}
		p.next = to.other()
	} else if p.finished(right) || !p.finished(left) && p.sent[left] < p.sent[right] {
		to = left
	}
	if p.finished(to) {
		return 0, false
	}
	p.sent[to]++
	b = sendOffset(p.sent[to])
	if to == left {
		b = -b
	}
	return b, true
}

// receive takes a message.
func (r *rule) receive(p *progress, b sendOffset) {
	from, distance := b.from(), b.distance()
	switch r.kind {
	case SparseChecked:
		p.limit[from] = min(p.limit[from], distance)
	case SparseOptimized:
		p.limit[from] = 0
		if o := from.other(); r.distance > distance {
			p.sent[o] = max(p.sent[o], r.distance-distance)
		}
	case SparseSafe:
		p.limit[from] = 0
	}
}
