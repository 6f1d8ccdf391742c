package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// A label that covers another, or a mark, is a bug.
func TestPicturesAreReadable(t *testing.T) {
	shapes := []topology.Shape{
		topology.Binomial(), topology.KAry(1), topology.KAry(4), topology.Lame(3),
		topology.Optimal(2, 1), topology.KAry(1000),
	}
	for _, shape := range shapes {
		for _, order := range []topology.Order{topology.Interleaved, topology.InOrder} {
			for _, size := range []protocol.Rank{1, 2, 3, 9, 16, 31, 64, 100, 256, 1000} {
				t.Run(fmt.Sprintf("%v/%v/%d", shape, order, size), func(t *testing.T) {
					c := color(t, shape, order, size, size/3+1, size/2, size-1)
					checkPicture(t, c)
				})
			}
		}
	}
	t.Run("largest", func(t *testing.T) {
		checkPicture(t, color(t, topology.Binomial(), topology.Interleaved, MaxPictureSize, 1, 2))
	})
}

func checkPicture(t *testing.T, c *Coloring) {
	t.Helper()
	var svg bytes.Buffer
	if err := Picture(&svg, c, "A title with <&> in it"); err != nil {
		t.Fatal(err)
	}
	drawn := parse(t, &svg)
	drawn.checkLabels(t)
	drawn.checkCircles(t)
	if want := int(c.Tree.Size()); len(drawn.circles) < 2*(want-len(c.Failed)) {
		t.Errorf("%d circles for %d ranks, each in the tree and on the ring", len(drawn.circles), want)
	}
}

// Small pictures have room for all labels.
func TestSmallPicturesNameEveryRank(t *testing.T) {
	c := color(t, topology.Lame(3), topology.Interleaved, 9, 2)
	var svg bytes.Buffer
	if err := Picture(&svg, c, "title"); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, l := range parse(t, &svg).labels {
		seen[l.text]++
	}
	for r := range 9 {
		if n := seen[strconv.Itoa(r)]; n != 2 {
			t.Errorf("rank %d is named %d times, want in the tree and on the ring", r, n)
		}
	}
}

// color makes a tree with those of the ranks dead that can be.
func color(t *testing.T, shape topology.Shape, order topology.Order, size protocol.Rank,
	dead ...protocol.Rank,
) *Coloring {
	t.Helper()
	tree, err := topology.New(shape, order, size, 0)
	if err != nil {
		t.Fatal(err)
	}
	var failed []protocol.Rank
	for _, r := range dead {
		if r > 0 && r < size {
			failed = append(failed, r)
		}
	}
	return Color(tree, failed, 2, 1)
}

// drawing is what a test sees of a picture.
type drawing struct {
	width, height float64
	labels        []label
	circles       []circle
}

type label struct {
	box
	text string
}

type circle struct{ x, y, r float64 }

// parse reads a picture back from its SVG, which must be well-formed.
func parse(t *testing.T, r io.Reader) *drawing {
	t.Helper()
	var d drawing
	dec := xml.NewDecoder(r)
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return &d
		}
		if err != nil {
			t.Fatal(err)
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		text := func(name string) string {
			for _, a := range element.Attr {
				if a.Name.Local == name {
					return a.Value
				}
			}
			t.Fatalf("<%s> has no %s", element.Name.Local, name)
			return ""
		}
		number := func(name string) float64 {
			n, err := strconv.ParseFloat(text(name), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		switch element.Name.Local {
		case "svg":
			d.width, d.height = number("width"), number("height")
		case "text":
			var words string
			if err := dec.DecodeElement(&words, &element); err != nil {
				t.Fatal(err)
			}
			d.labels = append(d.labels, label{textBox(number("x"), number("y"), number("font-size"), anchor(text("text-anchor")),
				words), words})
		case "circle":
			if class := text("class"); class != "ring" {
				d.circles = append(d.circles, circle{number("cx"), number("cy"), number("r")})
			}
		}
	}
}

// checkLabels holds labels apart from each other, from circles and from the
// picture's edge.
func (d *drawing) checkLabels(t *testing.T) {
	t.Helper()
	for i, a := range d.labels {
		if a.left < 0 || a.top < 0 || a.right > d.width || a.bottom > d.height {
			t.Errorf("%q leaves the picture: %v", a.text, a.box)
		}
		for _, b := range d.labels[:i] {
			if a.overlaps(b.box) {
				t.Errorf("%q covers %q: %v, %v", a.text, b.text, a.box, b.box)
			}
		}
		for _, c := range d.circles {
			if a.overlaps(box{c.x - c.r, c.y - c.r, c.x + c.r, c.y + c.r}) {
				t.Errorf("%q covers the mark at %v", a.text, c)
			}
		}
	}
}

// checkCircles holds marks apart from each other.
func (d *drawing) checkCircles(t *testing.T) {
	t.Helper()
	for i, a := range d.circles {
		for _, b := range d.circles[:i] {
			if math.Hypot(a.x-b.x, a.y-b.y) < a.r+b.r-0.02 { // coordinates are rounded
				t.Errorf("marks overlap: %v, %v", a, b)
			}
		}
	}
}
