package launch

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
)

// Whatever pieces output comes in, lines are whole, and nothing is lost but the
// ends that were missing.
func TestOutputLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"\n", "[7] \n"},
		{"a\nb", "[7] a\n[7] b\n"},
		{strings.Repeat("x", 5000) + "\ny\n", "[7] " + strings.Repeat("x", 5000) + "\n[7] y\n"},
		{
			strings.Repeat("x", maxLine+10) + "\n",
			"[7] " + strings.Repeat("x", maxLine) + "\n[7] " + strings.Repeat("x", 10) + "\n",
		},
	} {
		for _, size := range []int{1, 3, 4096, len(c.text) + 1} {
			var out bytes.Buffer
			o := &Output{Stdout: Stream{Writer: &out}, Prefix: true}
			l := &lines{output: o, to: &o.Stdout, rank: 7}
			for piece := range slices.Chunk([]byte(c.text), size) {
				_, _ = l.Write(piece)
			}
			l.flush()
			if out.String() != c.want {
				t.Errorf("%.20q in pieces of %d: got %d bytes, %.40q, want %d", c.text, size, out.Len(), out.String(), len(c.want))
			}
		}
	}
}

func TestOutputColor(t *testing.T) {
	var out bytes.Buffer
	o := &Output{Stdout: Stream{Writer: &out, Color: true}, Prefix: true}
	o.line(&o.Stdout, 1, []byte("a"))
	o.line(&o.Stdout, 11, []byte("b"))
	if want := "\x1b[32m[1]\x1b[0m a\n\x1b[32m[11]\x1b[0m b\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestOutputBroken(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	o := &Output{Stdout: Stream{Writer: w}, Prefix: true}
	o.begin()
	o.line(&o.Stdout, 0, []byte("a"))
	o.line(&o.Stdout, 0, []byte("b"))
	if err := <-o.broken; err != io.ErrClosedPipe {
		t.Errorf("got %v", err)
	}
}
