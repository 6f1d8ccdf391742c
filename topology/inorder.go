package topology

import "github.com/pleach-go/pleach/protocol"

// inOrder numbers the tree of a timetable depth first. A node with s slots left
// has a subtree of B(s) processes, itself included. T(s) = T(s−a) • T(s−b)
// splits it: the first child takes the ranks from B(s−a) on, and the rest is the
// same node with a slots fewer. For the binomial tree this is "flip one bit
// below the lowest set one, largest first".
//
// Ranks beyond the size do not exist: a parent skips them. Each answer descends
// from the root and takes one step for every slot on the path.
type inOrder struct{ *timetable }

// position is the position of a rank in an in-order tree.
type position struct {
	parent protocol.Rank
	index  int           // among the parent's children
	depth  int           // hops from the root
	size   protocol.Rank // k-ary: processes in the subtree
	slots  protocol.Time // timetable: slots left to send in
}

// first returns the rank of the first child of node r with that many slots left,
// even if that rank is beyond the size.
func (t inOrder) first(r protocol.Rank, slots protocol.Time) protocol.Rank {
	return r + t.born[max(0, slots-t.step)]
}

func (t inOrder) find(r protocol.Rank) position {
	p := position{parent: protocol.NoRank, slots: t.end()}
	index := 0
	for at := protocol.Rank(0); at != r; {
		child := t.first(at, p.slots)
		switch {
		case r >= child:
			p = position{parent: at, index: index, depth: p.depth + 1, slots: p.slots - t.delay}
			at, index = child, 0
			continue
		case child < t.size:
			index++
		}
		p.slots -= t.step
	}
	return p
}

func (t inOrder) Parent(r protocol.Rank) (protocol.Rank, int) {
	p := t.find(r)
	return p.parent, p.index
}

func (t inOrder) Child(r protocol.Rank, i int) (protocol.Rank, bool) {
	for slots := t.find(r).slots; slots > 0; slots -= t.step {
		child := t.first(r, slots)
		if child >= t.size {
			continue
		}
		if i == 0 {
			return child, true
		}
		i--
	}
	return protocol.NoRank, false
}

func (t inOrder) Depth(r protocol.Rank) int { return t.find(r).depth }

func (t inOrder) finishTime(l, o protocol.Time) protocol.Time {
	return t.finishBelow(0, t.end(), l, o)
}

// finishBelow returns the time from the coloring of node r to the coloring of
// the last process in its subtree.
func (t inOrder) finishBelow(r protocol.Rank, slots, l, o protocol.Time) protocol.Time {
	var finish, wait protocol.Time
	for ; slots > 0; slots -= t.step {
		child := t.first(r, slots)
		if child >= t.size {
			continue
		}
		finish = max(finish, wait+2*o+l+t.finishBelow(child, slots-t.delay, l, o))
		wait += o
	}
	return finish
}
