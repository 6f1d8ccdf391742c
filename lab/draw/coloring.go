package draw

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Mark is the state of a rank after dissemination.
type Mark uint8

// The marks.
const (
	// Uncolored is a live rank that the tree does not reach.
	Uncolored Mark = iota
	// Colored has the message.
	Colored
	// Dead was dead from the start.
	Dead
)

// Coloring is what dissemination along a tree leaves when some ranks are dead:
// what all pictures of a tree and its ring show.
type Coloring struct {
	Tree  topology.Tree
	Marks []Mark // by rank
	Gaps  []topology.Gap

	// Depth and FinishTime are those of the tree when no process fails.
	Depth      int
	FinishTime protocol.Time
	// Failed are the dead and Unreached the live ranks without the message, in
	// ascending order.
	Failed, Unreached []protocol.Rank
	// MaxGap is the length of the longest gap.
	MaxGap protocol.Rank
}

// Color disseminates along the tree with the given ranks dead, under latency l
// and overhead o.
func Color(tree topology.Tree, failed []protocol.Rank, l, o protocol.Time) *Coloring {
	c := &Coloring{
		Tree:       tree,
		Marks:      make([]Mark, tree.Size()),
		FinishTime: topology.FinishTime(tree, l, o),
	}
	for _, r := range failed {
		c.Marks[r] = Dead
	}
	for r := range topology.Subtree(tree, tree.Root()) {
		c.Depth = max(c.Depth, tree.Depth(r))
		parent, _ := tree.Parent(r)
		if c.Marks[r] != Dead && (parent == protocol.NoRank || c.Marks[parent] == Colored) {
			c.Marks[r] = Colored
		}
	}
	for r, mark := range c.Marks {
		switch mark {
		case Dead:
			c.Failed = append(c.Failed, protocol.Rank(r))
		case Uncolored:
			c.Unreached = append(c.Unreached, protocol.Rank(r))
		}
	}
	ring := topology.Ring{Size: tree.Size()}
	c.Gaps = slices.Collect(ring.Gaps(func(r protocol.Rank) bool { return c.Marks[r] == Colored }))
	for _, gap := range c.Gaps {
		c.MaxGap = max(c.MaxGap, gap.Length)
	}
	return c
}

// Summary says in one line what there is to know besides the picture.
func (c *Coloring) Summary() string {
	s := fmt.Sprintf("depth %d, finish time %d", c.Depth, c.FinishTime)
	if len(c.Failed) > 0 {
		s += fmt.Sprintf(", %d dead, %d uncolored, longest gap %d", len(c.Failed), len(c.Unreached), c.MaxGap)
	}
	return s
}
