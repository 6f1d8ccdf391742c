package logp

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Sparse simulates broadcasts along an interleaved tree with synchronized
// correction and processes that are dead from the start. It shows what
// [Simulator] shows with the machines of package broadcast, figure by figure,
// for a small part of the work and memory: a bit or two for every process, and
// time for those next to gaps.
//
// It rests on three facts. A dead process leaves exactly its descendants
// uncolored, and in an interleaved tree they are found 64 at a time ([Lineage]).
// All processes that correct do the same in the same slots until messages of others
// arrive, and a process with two colored neighbors is then done ([lockstep]). The
// rest, a process or two next to every gap, is followed message by message
// ([boundary]).
//
// A group too large to be simulated at once is cut into pieces that overlap
// ([stretch]). A Sparse is not for concurrent use. The terms of its code are in
// ADR 7.
type Sparse struct {
	params  Params
	lineage *Lineage
	rule    rule
	lockstep

	dead, colored bitmap // relative to the root
	stretch       stretch
	piece, halo   int // sizes to cut a large ring into
	pieces        int // how many the last run was cut into
}

// What a large ring is cut into, in processes: what is counted at a time, and what is
// simulated with it on both sides. Both are multiples of 64.
const (
	firstPiece = 1 << 14
	firstHalo  = 1 << 8
	haloGrowth = 8
)

// NewSparse makes a simulator for one broadcast, or says why it does not apply.
// The distance is that of the opportunistic family, per side. Memory is taken
// when it first runs.
func NewSparse(params Params, lineage *Lineage, kind SparseRule, distance protocol.Rank) (*Sparse, error) {
	r, err := newRule(kind, distance, lineage.size)
	if err != nil {
		return nil, err
	}
	if params.O != lineage.o || params.Hop() != lineage.hop {
		return nil, fmt.Errorf("logp: the lineage is for another network: not for L = %d, o = %d", params.L, params.O)
	}
	return &Sparse{
		params: params, lineage: lineage, rule: r, lockstep: newLockstep(&r, params),
		piece: firstPiece, halo: firstHalo,
	}, nil
}

// Run simulates one broadcast, of a group of the lineage's size.
func (s *Sparse) Run(dead *DeadSet) (Result, error) {
	size := s.lineage.size
	if dead.ranks.size != size {
		return Result{}, fmt.Errorf("logp: the dead are of a group of %d, the tree is of %d", dead.ranks.size, size)
	}
	if s.dead.size == 0 {
		s.dead, s.colored = newBitmap(size), newBitmap(size)
	}
	s.dead.load(&dead.ranks, int(s.lineage.tree.Root()), size)
	live := protocol.Rank(size - s.dead.count())
	if s.dead.has(0) { // nothing begins
		return Result{MaxGap: protocol.Rank(size - 1), Live: live, Unreached: live}, nil
	}
	result := Result{Live: live}
	result.Messages[protocol.Dissemination] = s.lineage.color(&s.colored, &s.dead)
	result.MaxGap = protocol.Rank(s.colored.longestZeroRun())
	if size == 1 {
		return result, nil
	}
	s.conclude(&result, s.correct())
	if result.Quiescence > MaxTime {
		return result, fmt.Errorf("%w: still active at time %d", ErrEndless, result.Quiescence)
	}
	return result, nil
}

// conclude turns slots and rounds into times.
func (s *Sparse) conclude(result *Result, t tally) {
	start, o, hop := s.lineage.FinishTime(), s.params.O, s.params.Hop()
	result.Messages[protocol.Correction] = t.messages
	result.Unreached = protocol.Rank(t.unreached)
	result.CorrectionTime = protocol.Time(t.ended)*o + hop
	result.Quiescence = start + result.CorrectionTime
	result.LastSend = start + protocol.Time(t.sent+1)*o
	if t.colored == nothing {
		result.Coloring = s.lineage.latestOf(&s.colored)
	} else {
		result.Coloring = start + protocol.Time(t.colored)*o + hop
	}
}

// correct simulates correction: at once on a small ring, else piece by piece. If
// correction takes longer than the overlap of pieces allows, it is simulated again in
// larger ones.
func (s *Sparse) correct() tally {
	for piece, halo := s.piece, s.halo; ; piece, halo = haloGrowth*piece, haloGrowth*halo {
		if piece+2*halo >= s.lineage.size {
			s.pieces = 1
			s.load(0, s.lineage.size, 0)
			return s.stretch.play(MaxTime)
		}
		if sum, ok := s.correctInPieces(piece, halo); ok {
			return sum
		}
	}
}

func (s *Sparse) correctInPieces(piece, halo int) (sum tally, ok bool) {
	sum = tally{colored: nothing, ended: nothing, sent: nothing}
	slots := s.slots(halo)
	if !s.over && slots < s.lag+len(s.scripted) {
		return sum, false // not even the scripts fit
	}
	s.pieces = 0
	for at := 0; at < s.lineage.size; at += piece {
		s.pieces++
		s.load(at, min(piece, s.lineage.size-at), halo)
		t := s.stretch.play(slots)
		if t.unsettled {
			return sum, false
		}
		sum.messages += t.messages
		sum.unreached += t.unreached
		sum.colored, sum.ended, sum.sent = max(sum.colored, t.colored), max(sum.ended, t.ended), max(sum.sent, t.sent)
	}
	return sum, true
}

// slots is how many slots a piece can be simulated for until an error at its end
// could have reached the core.
//
// A message is known lag slots after it was sent. So what a process does in
// slot k is right if all is right, until slot k − lag, from as far out as
// messages of that slot go; and so on. When its message is received depends on
// what others send to the same port, from as far beyond.
func (s *Sparse) slots(halo int) int {
	for slot := 0; ; slot++ {
		blur := 2 * s.rule.farthest(slot)
		for k := slot - s.lag; k >= 0; k -= s.lag {
			blur += s.rule.farthest(k)
		}
		if blur > halo {
			return slot
		}
	}
}

// load makes the stretch n processes from a position on, with a halo; or the ring, if
// n is all of it and there is no halo.
func (s *Sparse) load(at, n, halo int) {
	t := &s.stretch
	margin := (s.reach()+1+63)/64*64 + 64
	t.rule, t.lockstep, t.free = &s.rule, s.lockstep, s.params.FreeReceive
	t.lo, t.hi = margin, margin+halo+n+halo
	t.first, t.last = margin+halo, margin+halo+n
	start, length := at-halo-margin, t.hi+margin
	if t.colored.size < length {
		t.colored, t.dead, t.uncolored = newBitmap(length), newBitmap(length), newBitmap(length)
		t.boundary.ports, t.boundary.listening = make([]port32, length), newBitmap(length)
	}
	t.colored.load(&s.colored, start, length)
	t.dead.load(&s.dead, start, length)
	// Positions count from the root, ranks do not: where is rank 0?
	ring := topology.Ring{Size: s.lineage.tree.Size()}
	t.rank0 = t.lo + int(ring.Left(0, s.lineage.tree.Root()+protocol.Rank(at-halo)))
}
