package draw

import (
	"fmt"
	"io"
)

// MaxPictureSize is the largest tree that is worth a picture.
const MaxPictureSize = 4096

// Sizes of a picture's parts, in pixels.
const (
	margin     = 24.0
	titleSize  = 16.0
	textSize   = 12.0
	labelSize  = 10.0
	headHeight = 90.0 // title, summary, legend
)

// Picture draws the tree and its ring as SVG. They stand one above the other,
// or side by side if the tree is taller than wide.
func Picture(w io.Writer, c *Coloring, title string) error {
	tree, ring, legend := layOutTree(c.Tree), layOutRing(c.Tree.Size()), legendOf(c)
	width := max(tree.width, ring.width)
	height := tree.height + margin + ring.width
	beside := tree.height > tree.width
	if beside {
		width = tree.width + margin + ring.width
		height = max(tree.height, ring.width)
	}
	page := max(width, textWidth(title, titleSize), textWidth(c.Summary(), textSize), legend.width())

	var pic canvas
	pic.text(margin, margin+titleSize, titleSize, start, title)
	pic.text(margin, margin+40, textSize, start, c.Summary())
	legend.draw(&pic, margin, margin+62)
	left, top := margin+(page-width)/2, margin+headHeight
	if beside {
		tree.draw(&pic, c, left, top)
		ring.draw(&pic, c, left+tree.width+margin, top)
	} else {
		tree.draw(&pic, c, left+(width-tree.width)/2, top)
		ring.draw(&pic, c, left+(width-ring.width)/2, top+tree.height+margin)
	}
	return pic.write(w, page+2*margin, top+height+margin)
}

// legendOf explains the signs that occur.
func legendOf(c *Coloring) legend {
	colored := len(c.Marks) - len(c.Failed) - len(c.Unreached)
	l := legend{{markSign(Colored), fmt.Sprintf("%d colored", colored)}}
	if len(c.Failed) > 0 {
		l = append(l,
			entry{markSign(Dead), fmt.Sprintf("%d dead", len(c.Failed))},
			entry{markSign(Uncolored), fmt.Sprintf("%d uncolored", len(c.Unreached))},
			entry{arcSign, "gap"})
	}
	return l
}

func arcSign(pic *canvas, x, y float64) {
	pic.add(`<path class="gap" d="M%.2f %.2fq6 -6 12 0"/>`, x-6, y+1.5)
}
