package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// canvas collects the elements of an SVG picture. It also remembers which parts
// are taken, so that labels can stay away from each other and from marks.
type canvas struct {
	body  bytes.Buffer
	taken []box
}

// style is the look of all pictures. The palette is Okabe and Ito's, which
// remains distinct for the color-blind.
const style = `text{font-family:sans-serif;fill:#222}
.edge{fill:none;stroke:#999}.cut{stroke-dasharray:3 3;stroke:#bbb}
.colored{fill:#0072b2}.dead{fill:none;stroke:#c1121f}.uncolored{fill:#fff;stroke:#e69f00}
.ring{fill:none;stroke:#ddd}.gap{fill:none;stroke:#e69f00;stroke-width:3.5}
.dissemination{fill:#0072b2;stroke:#0072b2}.correction{fill:#e69f00;stroke:#e69f00}.acknowledgment{fill:#009e73;stroke:#009e73}
.receive{fill-opacity:.3}.flight{stroke-width:.7;stroke-opacity:.45}.row{stroke:#ddd}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}rect[fill="#fff"],.uncolored{fill:#0d1117}.ring,.row,.cut{stroke:#444c56}
.colored{fill:#4aa8e0}.dissemination{fill:#4aa8e0;stroke:#4aa8e0}}`

// box is an area of the picture.
type box struct{ left, top, right, bottom float64 }

func (a box) overlaps(b box) bool {
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}

// anchor says which point of a text its position is.
type anchor string

const (
	start  anchor = "start"
	middle anchor = "middle"
	end    anchor = "end"
)

// textWidth is how wide a text is at most. Fonts differ; few are wider.
func textWidth(s string, size float64) float64 {
	return 0.65 * size * float64(utf8.RuneCountInString(s))
}

// textBox is the area of a text whose baseline is at y.
func textBox(x, y, size float64, a anchor, s string) box {
	width := textWidth(s, size)
	switch a {
	case middle:
		x -= width / 2
	case end:
		x -= width
	}
	return box{x, y - 0.8*size, x + width, y + 0.2*size}
}

// add writes an element. Numbers of a picture need no more than two decimals.
func (c *canvas) add(format string, args ...any) {
	fmt.Fprintf(&c.body, format+"\n", args...)
}

// text writes a text for which there is known to be room.
func (c *canvas) text(x, y, size float64, a anchor, s string) {
	var escaped strings.Builder
	xml.EscapeText(&escaped, []byte(s)) // a Builder takes everything
	c.add(`<text x="%.2f" y="%.2f" font-size="%g" text-anchor="%s">%s</text>`, x, y, size, a, escaped.String())
	c.reserve(textBox(x, y, size, a, s))
}

// labelSpace is how far a label stays from others: numbers that touch read as
// one.
const labelSpace = 2.0

// label writes a text unless it would cover something.
func (c *canvas) label(x, y, size float64, a anchor, s string) {
	b := textBox(x, y, size, a, s)
	b.left, b.right = b.left-labelSpace, b.right+labelSpace
	for _, other := range c.taken {
		if b.overlaps(other) {
			return
		}
	}
	c.text(x, y, size, a, s)
}

// reserve keeps labels out of an area.
func (c *canvas) reserve(b box) { c.taken = append(c.taken, b) }

// mark draws the sign of a rank. Signs differ in shape as well as in color.
func (c *canvas) mark(m Mark, x, y, r float64) {
	switch m {
	case Colored:
		c.add(`<circle class="colored" cx="%.2f" cy="%.2f" r="%.2f"/>`, x, y, r)
	case Dead:
		a := 0.85 * r
		c.add(`<path class="dead" stroke-width="%.2f" d="M%.2f %.2fL%.2f %.2fM%.2f %.2fL%.2f %.2f"/>`,
			r*0.45, x-a, y-a, x+a, y+a, x-a, y+a, x+a, y-a)
	case Uncolored:
		c.add(`<circle class="uncolored" stroke-width="%.2f" cx="%.2f" cy="%.2f" r="%.2f"/>`, r*0.4, x, y, 0.8*r)
	}
	c.reserve(box{x - r, y - r, x + r, y + r})
}

// write writes the picture.
func (c *canvas) write(w io.Writer, width, height float64) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f">
<style>%s</style>
<rect width="100%%" height="100%%" fill="#fff"/>
%s</svg>
`, width, height, width, height, style, c.body.Bytes())
	return err
}
