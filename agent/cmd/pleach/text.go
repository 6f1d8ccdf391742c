package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// What the tables of several commands share.

// writeColumns writes rows, the last column of each as it is.
func writeColumns(b *strings.Builder, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			fmt.Fprintf(b, "%-*s  ", widths[i], cell)
		}
		b.WriteString(row[len(row)-1] + "\n")
	}
}

// ranges writes ascending ranks, runs of them shortened, as in 0-3,7, with a
// separator between. If there are more than so many runs, the rest is "and more".
func ranges(ranks []int, separator string, most int) string {
	var parts []string
	for len(ranks) > 0 {
		if len(parts) == most {
			parts = append(parts, "and more")
			break
		}
		n := 1
		for n < len(ranks) && ranks[n] == ranks[0]+n {
			n++
		}
		part := fmt.Sprint(ranks[0])
		if n > 1 {
			part += fmt.Sprintf("-%d", ranks[n-1])
		}
		parts = append(parts, part)
		ranks = ranks[n:]
	}
	return strings.Join(parts, separator)
}

// newLogger writes a line for each event.
func newLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
