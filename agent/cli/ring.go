package cli

import (
	"fmt"
	"strings"
)

// Ranks of the ring per row and per group: a row fits 80 columns, and groups of
// eight can be counted at a glance.
const (
	ringRow   = 32
	ringGroup = 8
)

// RingText is the marks of ranks in order, so that gaps are seen. Rows begin with
// their first rank, in so many columns.
func RingText(size, columns int, mark func(rank int) string) string {
	var b strings.Builder
	b.WriteString("ring\n")
	for r := range size {
		switch {
		case r%ringRow == 0:
			fmt.Fprintf(&b, "%*d ", columns, r)
		case r%ringGroup == 0:
			b.WriteString(" ")
		}
		b.WriteString(" " + mark(r))
		if r%ringRow == ringRow-1 || r == size-1 {
			b.WriteString("\n")
		}
	}
	return b.String()
}
