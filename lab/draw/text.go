package draw

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/protocol"
)

// MaxTextSize is the largest tree that is readable in a terminal.
const MaxTextSize = 512

// Text writes the tree, then the ring, then the summary for a terminal.
func Text(w io.Writer, c *Coloring, color bool) error {
	t := textWriter{Writer: bufio.NewWriter(w), Coloring: c, color: color}
	t.subtree(c.Tree.Root(), "")
	digits := len(strconv.Itoa(len(c.Marks) - 1))
	t.WriteString("\n" + cli.RingText(len(c.Marks), digits+2, func(r int) string { return t.mark(protocol.Rank(r)) }))
	fmt.Fprintf(t, "\n%s\n", c.Summary())
	return t.Flush()
}

type textWriter struct {
	*bufio.Writer
	*Coloring
	color bool
}

// subtree writes a rank and, each line after the indent, all below it.
func (t *textWriter) subtree(r protocol.Rank, indent string) {
	fmt.Fprintf(t, "%s %d\n", t.mark(r), r)
	for i := 0; ; i++ {
		child, ok := t.Tree.Child(r, i)
		if !ok {
			return
		}
		branch, below := "├─ ", "│  "
		if _, more := t.Tree.Child(r, i+1); !more {
			branch, below = "└─ ", "   "
		}
		t.WriteString(indent + branch)
		t.subtree(child, indent+below)
	}
}

// mark is the sign for a rank, in the terminal's own blue, red or yellow.
func (t *textWriter) mark(r protocol.Rank) string {
	sign, color := "○", 33
	switch t.Marks[r] {
	case Colored:
		sign, color = "●", 34
	case Dead:
		sign, color = "✗", 31
	}
	if !t.color {
		return sign
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", color, sign)
}
