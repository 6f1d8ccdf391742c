package topology

import "github.com/pleach-go/pleach/protocol"

// karyInterleaved is the balanced tree whose level ℓ holds k^ℓ consecutive
// ranks. Rank r on level ℓ has the children r + i·k^ℓ, 1 ≤ i ≤ k (Corrected
// Trees §3.2.1). Processes of one subtree are thus k^ℓ apart.
type karyInterleaved struct {
	size   protocol.Rank
	levels []level
}

// level is one level of a k-ary tree.
type level struct {
	first  protocol.Rank // its lowest rank
	width  protocol.Rank // its number of ranks if full, and the distance of siblings below
	fanout protocol.Rank // the most children of one of its processes
}

func newKaryInterleaved(size, k protocol.Rank) karyInterleaved {
	t := karyInterleaved{size: size}
	for first, width := protocol.Rank(0), protocol.Rank(1); first < size; {
		t.levels = append(t.levels, level{first: first, width: width, fanout: min(k, size/width)})
		first += width
		// Only the last level may be wider than size, and by how much does not
		// matter. The bound keeps the product from overflowing.
		width = k * min(width, size/k+1)
	}
	return t
}

func (t karyInterleaved) Size() protocol.Rank { return t.size }

func (t karyInterleaved) Root() protocol.Rank { return 0 }

func (t karyInterleaved) Parent(r protocol.Rank) (protocol.Rank, int) {
	depth := t.Depth(r)
	if depth == 0 {
		return protocol.NoRank, 0
	}
	above, offset := t.levels[depth-1], r-t.levels[depth].first
	return above.first + offset%above.width, int(offset / above.width)
}

func (t karyInterleaved) Child(r protocol.Rank, i int) (protocol.Rank, bool) {
	level := t.levels[t.Depth(r)]
	if i < 0 || protocol.Rank(i) >= level.fanout {
		return protocol.NoRank, false
	}
	child := r + protocol.Rank(i+1)*level.width
	return child, child < t.size
}

// Depth searches from the bottom, where most ranks are.
func (t karyInterleaved) Depth(r protocol.Rank) int {
	depth := len(t.levels) - 1
	for r < t.levels[depth].first {
		depth--
	}
	return depth
}

// karyInOrder is the balanced k-ary tree numbered depth first. A process divides
// the others of its subtree among its children as evenly as possible; earlier
// children get the larger shares (Corrected Trees §3.2, Figure 3 left).
type karyInOrder struct{ size, k protocol.Rank }

func (t karyInOrder) Size() protocol.Rank { return t.size }

func (t karyInOrder) Root() protocol.Rank { return 0 }

func (t karyInOrder) find(r protocol.Rank) position {
	p := position{parent: protocol.NoRank, size: t.size}
	for at := protocol.Rank(0); at != r; p.depth++ {
		share, larger := (p.size-1)/t.k, (p.size-1)%t.k
		// The larger shares come first and have one more process.
		offset, skipped := r-at-1, protocol.Rank(0)
		if offset < larger*(share+1) {
			share++
		} else {
			skipped = larger
		}
		index := (offset - skipped) / share
		p.parent, p.index, p.size = at, int(index), share
		at += 1 + skipped + index*share
	}
	return p
}

func (t karyInOrder) Parent(r protocol.Rank) (protocol.Rank, int) {
	p := t.find(r)
	return p.parent, p.index
}

func (t karyInOrder) Child(r protocol.Rank, i int) (protocol.Rank, bool) {
	others, index := t.find(r).size-1, protocol.Rank(i)
	if index < 0 || index >= min(t.k, others) {
		return protocol.NoRank, false
	}
	return r + 1 + index*(others/t.k) + min(index, others%t.k), true
}

func (t karyInOrder) Depth(r protocol.Rank) int { return t.find(r).depth }

func (t karyInOrder) finishTime(l, o protocol.Time) protocol.Time {
	return t.finishBelow(t.size, l, o)
}

// finishBelow returns the time from the coloring of the top of a subtree of that
// size to the coloring of its last process. Of equal shares the last one is sent
// to last, so it decides.
func (t karyInOrder) finishBelow(size protocol.Rank, l, o protocol.Time) protocol.Time {
	share, larger := (size-1)/t.k, (size-1)%t.k
	var finish protocol.Time
	if larger > 0 {
		finish = protocol.Time(larger+1)*o + l + t.finishBelow(share+1, l, o)
	}
	if share > 0 {
		finish = max(finish, protocol.Time(t.k+1)*o+l+t.finishBelow(share, l, o))
	}
	return finish
}

// chain is the tree of arity one, the same in both orders.
type chain protocol.Rank

func (t chain) Size() protocol.Rank { return protocol.Rank(t) }

func (t chain) Root() protocol.Rank { return 0 }

func (t chain) Parent(r protocol.Rank) (protocol.Rank, int) {
	return r - 1, 0 // the root's is NoRank
}

func (t chain) Child(r protocol.Rank, i int) (protocol.Rank, bool) {
	return r + 1, i == 0 && r+1 < t.Size()
}

func (t chain) Depth(r protocol.Rank) int { return int(r) }
