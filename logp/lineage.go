package logp

import (
	"fmt"
	"math/bits"
	"slices"
	"sort"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Lineage is an interleaved tree written down as runs: consecutive ranks whose
// parents are consecutive too. There are few of them (a binomial tree over 2^30
// has 30), so that the ranks cut off by the dead are found 64 ranks at a time, and
// when the last rank is colored without asking every rank.
//
// Ranks are relative to the root here. A parent always has a lower rank.
type Lineage struct {
	tree topology.Tree
	size int
	o    protocol.Time
	hop  protocol.Time
	runs []run
	// finish is when the last process is colored if no process is dead.
	finish protocol.Time
}

// run is ranks first … first+length−1. The parent of r is r − offset, for all of
// them, and they are all its index-th child.
type run struct {
	first, length, offset int
	delay                 protocol.Time // from a parent's coloring to its child's
	latest                protocol.Time // when the last of the run is colored if no process is dead
}

// maxRuns bounds the memory of a lineage. Nearly flat trees and chains over
// millions have more.
const maxRuns = 1 << 20

// NewLineage finds the runs of an interleaved tree.
//
// A run is found by its ends. That is enough because in interleaved trees the
// i-th children of ascending parents ascend: if the parents of r and r+n, as
// i-th children, are n apart, then the i-th children of the n−1 parents between
// are n−1 different ranks between r and r+n, hence all of them, in order.
func NewLineage(tree topology.Tree, params Params) (*Lineage, error) {
	if err := params.check(); err != nil {
		return nil, err
	}
	if tree.Size() > MaxSize {
		return nil, fmt.Errorf("logp: %d processes: between 1 and %d can be simulated", tree.Size(), MaxSize)
	}
	l := &Lineage{tree: tree, size: int(tree.Size()), o: params.O, hop: params.Hop()}
	for r := 1; r < l.size; {
		if len(l.runs) == maxRuns {
			return nil, fmt.Errorf("logp: the tree over %d processes has no regular structure to make use of", l.size)
		}
		offset, index := l.origin(r)
		// Parents that are children in the same run would have to be known first.
		length := 1 + sort.Search(min(offset, l.size-r)-1, func(i int) bool {
			o, x := l.origin(r + 1 + i)
			return o != offset || x != index
		})
		next := run{first: r, length: length, offset: offset, delay: protocol.Time(index)*l.o + l.hop}
		next.latest = next.delay + l.latestIn(r-offset, r-offset+length)
		l.runs = append(l.runs, next)
		l.finish = max(l.finish, next.latest)
		r += length
	}
	return l, nil
}

// origin is how far below r its parent is, and the how manieth child r is.
func (l *Lineage) origin(r int) (offset, index int) {
	ring := topology.Ring{Size: l.tree.Size()}
	parent, index := l.tree.Parent(ring.Right(protocol.Rank(r), l.tree.Root()))
	return r - int(ring.Left(parent, l.tree.Root())), index
}

// FinishTime is when the last process is colored if no process is dead: what
// [topology.FinishTime] says, without going through all ranks.
func (l *Lineage) FinishTime() protocol.Time { return l.finish }

// latestIn is when the last of ranks lo … hi−1 is colored if no process is dead.
func (l *Lineage) latestIn(lo, hi int) protocol.Time {
	var latest protocol.Time // the root's
	for i := l.find(lo); i < len(l.runs) && l.runs[i].first < hi; i++ {
		r := &l.runs[i]
		from, to := max(lo, r.first), min(hi, r.first+r.length)
		if to-from == r.length {
			latest = max(latest, r.latest)
		} else if r.latest > latest {
			latest = max(latest, r.delay+l.latestIn(from-r.offset, to-r.offset))
		}
	}
	return latest
}

// find is the index of the first run that ends after rank r.
func (l *Lineage) find(r int) int {
	i, _ := slices.BinarySearchFunc(l.runs, r, func(run run, r int) int { return run.first + run.length - 1 - r })
	return i
}

// color makes colored the processes that the tree reaches with these dead, and
// returns how many messages it sends. The root must live.
func (l *Lineage) color(colored, dead *bitmap) (messages int64) {
	colored.clear()
	colored.set(0)
	for i := range l.runs {
		r := &l.runs[i]
		for at, end := r.first, r.first+r.length; at < end; {
			n := min(64-at&63, end-at)
			parents := colored.fetch(at-r.offset) & below(n)
			messages += int64(bits.OnesCount64(parents))
			colored.put(at, parents&^dead.fetch(at))
			at += n
		}
	}
	return messages
}

// latestOf is when the last of the colored got the message.
func (l *Lineage) latestOf(colored *bitmap) protocol.Time {
	s := search{l, colored, 0}
	s.descend(0, l.size, 0, 0)
	return s.best
}

// search looks for the colored rank with the latest time, leaving out runs that
// cannot have one later than the best so far.
type search struct {
	*Lineage
	colored *bitmap
	best    protocol.Time
}

// descend looks at the ranks shift + lo … shift + hi−1, which all descend, by
// the same children, from lo … hi−1 and are colored that much later.
func (s *search) descend(lo, hi, shift int, later protocol.Time) {
	for i := min(s.find(hi-1), len(s.runs)-1); i >= 0 && s.runs[i].first+s.runs[i].length > lo; i-- {
		r := &s.runs[i]
		if later+r.latest > s.best && r.first < hi {
			from, to := max(lo, r.first), min(hi, r.first+r.length)
			s.descend(from-r.offset, to-r.offset, shift+r.offset, later+r.delay)
		}
	}
	if lo == 0 && later > s.best && s.colored.has(shift) {
		s.best = later
	}
}
