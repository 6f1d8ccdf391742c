package main

import (
	"fmt"
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

// count is a number of things, as in 1 member or 3 members.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// printable makes sure that what others have sent does nothing to a terminal.
func printable(text string) string {
	quoted := fmt.Sprintf("%+q", text)
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\uFFFD' }) {
		return quoted
	}
	return text
}
