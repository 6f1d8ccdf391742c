package simulation

import (
	"fmt"
	"io"
	"strings"

	"github.com/pleach-go/pleach/protocol"
)

// timeline prints what happens, one column for each process. nil prints nothing.
type timeline struct{ w io.Writer }

func newTimeline(w io.Writer) *timeline {
	if w == nil {
		return nil
	}
	return &timeline{w}
}

// columnWidth is how far the columns of two processes are apart.
const columnWidth = 6

// note prints what concerns all.
func (t *timeline) note(now protocol.Time, what string) {
	if t != nil {
		fmt.Fprintf(t.w, "%11.6f s == %s\n", float64(now)/1e9, what)
	}
}

// add prints an event in its process's column.
func (t *timeline) add(now protocol.Time, p *process, what string) {
	if t != nil {
		fmt.Fprintf(t.w, "%11.6f s %s%v %s\n", float64(now)/1e9, strings.Repeat(strings.Repeat(" ", columnWidth-1)+"|",
			p.host.index), p, what)
	}
}
