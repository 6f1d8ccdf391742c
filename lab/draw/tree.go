package draw

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// treeLayout places the ranks of a tree: levels from above, every leaf in a
// column of its own, every parent over the middle of its children. Subtrees
// then have columns of their own, so nothing overlaps and no edges cross.
type treeLayout struct {
	x, y          []float64 // by rank, of the middle of its mark
	radius        float64   // of a mark
	gap           float64   // between levels
	width, height float64
}

func layOutTree(tree topology.Tree) treeLayout {
	preorder := slices.Collect(topology.Subtree(tree, tree.Root()))
	t := treeLayout{x: make([]float64, len(preorder)), y: make([]float64, len(preorder))}
	leaves, depth := 0.0, 0
	for _, r := range preorder {
		level := tree.Depth(r)
		depth = max(depth, level)
		t.y[r] = float64(level)
		if _, inner := tree.Child(r, 0); !inner {
			t.x[r] = leaves
			leaves++
		}
	}
	for _, r := range slices.Backward(preorder) {
		if children := slices.Collect(topology.Children(tree, r)); len(children) > 0 {
			t.x[r] = (t.x[children[0]] + t.x[children[len(children)-1]]) / 2
		}
	}
	// Up to some size a picture grows with the tree, then the tree shrinks.
	column := min(max(1400/leaves, 1.2), 36)
	t.gap = min(max(900/float64(max(depth, 1)), 12), 56)
	t.radius = min(0.36*column, 0.3*t.gap, 6)
	for r := range t.x {
		t.x[r] = (t.x[r] + 0.5) * column
		t.y[r] = t.y[r]*t.gap + t.radius
	}
	t.width = leaves * column
	t.height = float64(depth)*t.gap + 2*t.radius + 1.5*labelSize
	return t
}

func (t treeLayout) draw(pic *canvas, c *Coloring, left, top float64) {
	for r := range c.Tree.Size() {
		t.edges(pic, c, r, left, top)
	}
	for r := range c.Tree.Size() {
		pic.mark(c.Marks[r], left+t.x[r], top+t.y[r], t.radius)
	}
	for _, r := range t.byImportance(c) {
		x, y, name := left+t.x[r], top+t.y[r], strconv.Itoa(int(r))
		if _, inner := c.Tree.Child(r, 0); inner {
			pic.label(x+t.radius+2.5, y+0.36*labelSize, labelSize, start, name)
		} else {
			pic.label(x, y+t.radius+1.2*labelSize, labelSize, middle, name)
		}
	}
}

// edges draws the way to all children of a rank, at right angles so that it
// stays clear of labels. A dead or uncolored rank does not send.
func (t treeLayout) edges(pic *canvas, c *Coloring, r protocol.Rank, left, top float64) {
	children := slices.Collect(topology.Children(c.Tree, r))
	if len(children) == 0 {
		return
	}
	class := "edge"
	if c.Marks[r] != Colored {
		class = "edge cut"
	}
	first, last := children[0], children[len(children)-1]
	bar := top + t.y[r] + t.gap/2
	var d strings.Builder
	fmt.Fprintf(&d, "M%.2f %.2fV%.2fM%.2f %.2fH%.2f", left+t.x[r], top+t.y[r], bar, left+t.x[first], bar, left+t.x[last])
	for _, child := range children {
		fmt.Fprintf(&d, "M%.2f %.2fV%.2f", left+t.x[child], bar, top+t.y[child])
	}
	pic.add(`<path class="%s" stroke-width="%.2f" d="%s"/>`, class, max(0.3, t.radius/5), d.String())
}

// byImportance orders ranks by how much their labels are missed: first the dead,
// then level by level.
func (t treeLayout) byImportance(c *Coloring) []protocol.Rank {
	order := make([]protocol.Rank, 0, len(t.y))
	for r := range c.Tree.Size() {
		if c.Marks[r] != Dead {
			order = append(order, r)
		}
	}
	slices.SortStableFunc(order, func(a, b protocol.Rank) int { return c.Tree.Depth(a) - c.Tree.Depth(b) })
	return slices.Concat(c.Failed, order)
}
