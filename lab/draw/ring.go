package draw

import (
	"fmt"
	"math"
	"strconv"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// ringLayout places all ranks on a circle, rank 0 on top and higher ranks
// clockwise, with labels around it and gaps as arcs within.
type ringLayout struct {
	size          float64 // ranks
	circle        float64 // radius of the circle
	radius        float64 // of a mark
	width, center float64 // of the square it fills
}

func layOutRing(size protocol.Rank) ringLayout {
	g := ringLayout{size: float64(size)}
	g.circle = max(100, min(g.size*12/(2*math.Pi), 420), g.size*1.5/(2*math.Pi))
	g.radius = min(6, 0.4*2*math.Pi*g.circle/g.size)
	g.center = g.circle + 1.5*g.radius + 3.5*labelSize
	g.width = 2 * g.center
	return g
}

// at returns where a place on the ring, at some distance from the center, is.
func (g ringLayout) at(place, distance float64) (x, y float64) {
	sin, cos := math.Sincos(2 * math.Pi * place / g.size)
	return g.center + distance*sin, g.center - distance*cos
}

func (g ringLayout) draw(pic *canvas, c *Coloring, left, top float64) {
	pic.add(`<circle class="ring" cx="%.2f" cy="%.2f" r="%.2f"/>`, left+g.center, top+g.center, g.circle)
	for _, gap := range c.Gaps {
		g.arc(pic, gap, left, top)
	}
	for r := range c.Tree.Size() {
		x, y := g.at(float64(r), g.circle)
		pic.mark(c.Marks[r], left+x, top+y, g.radius)
	}
	for _, r := range c.Failed {
		g.label(pic, r, left, top)
	}
	// Round steps read better than whatever happens to fit.
	step := protocol.Rank(1)
	widest := textWidth(strconv.Itoa(int(c.Tree.Size()-1)), labelSize)
	for float64(step)*2*math.Pi*g.circle/g.size < widest+3*labelSpace {
		step *= 2
	}
	for r := protocol.Rank(0); r < c.Tree.Size(); r += step {
		g.label(pic, r, left, top)
	}
	pic.text(left+g.center, top+g.center, textSize, middle, fmt.Sprintf("ring of %d", c.Tree.Size()))
	if c.MaxGap > 0 {
		pic.text(left+g.center, top+g.center+1.5*textSize, textSize, middle, fmt.Sprintf("longest gap %d", c.MaxGap))
	}
}

func (g ringLayout) label(pic *canvas, r protocol.Rank, left, top float64) {
	name := strconv.Itoa(int(r))
	// So far out that the corners of text and mark stay apart in any direction.
	distance := g.circle + math.Sqrt2*g.radius + labelSpace + math.Hypot(textWidth(name, labelSize), labelSize)/2
	x, y := g.at(float64(r), distance)
	pic.label(left+x, top+y+0.36*labelSize, labelSize, middle, name)
}

// arc draws a gap from before its first rank to after its last.
func (g ringLayout) arc(pic *canvas, gap topology.Gap, left, top float64) {
	distance := g.circle - g.radius - 5
	first := float64(gap.First) - 0.4
	length := float64(gap.Length) - 0.2
	x0, y0 := g.at(first, distance)
	x1, y1 := g.at(first+length, distance)
	large := 0
	if length > g.size/2 {
		large = 1
	}
	pic.add(`<path class="gap" d="M%.2f %.2fA%.2f %.2f 0 %d 1 %.2f %.2f"/>`,
		left+x0, top+y0, distance, distance, large, left+x1, top+y1)
}
