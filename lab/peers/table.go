package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

var columns = []string{
	"system", "complete", "p10", "p50", "p99", "max", "of pleach", "messages", "bytes",
	"goroutines", "kB",
}

// writeTable writes a table for each number of members, for people or for
// documents.
func writeTable(w io.Writer, results []broadcast.Result, markdown bool) error {
	var b strings.Builder
	row := writePlainRow
	if markdown {
		row = writeMarkdownRow
	}
	for i, r := range results {
		if i == 0 || results[i-1].Members != r.Members {
			if i > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "%d bytes to %d members in one process, %d rounds; µs\n\n", r.Size, r.Members, r.Rounds)
			row(&b, columns)
			if markdown {
				row(&b, strings.Split("---"+strings.Repeat(" ---:", len(columns)-1), " "))
			}
		}
		row(&b, cells(r, results))
	}
	fmt.Fprintf(&b, "\n%s\n", versions())
	_, err := io.WriteString(w, b.String())
	return err
}

func writePlainRow(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "%-10s", cells[0])
	for _, c := range cells[1:] {
		fmt.Fprintf(b, " %10s", c)
	}
	b.WriteString("\n")
}

func writeMarkdownRow(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// cells are what the columns say of a result.
func cells(r broadcast.Result, results []broadcast.Result) []string {
	row := []string{r.System, fmt.Sprintf("%d", r.Complete)}
	for _, time := range []float64{r.P10, r.P50, r.P99, r.Max} {
		row = append(row, known("%.0f", time))
	}
	return append(row, ofPleach(r, results), known("%.2f", r.Messages), known("%.0f", r.Bytes),
		known("%.1f", r.Goroutines), known("%.1f", r.Memory/1000))
}

// known leaves out what was not measured.
func known(format string, value float64) string {
	if value == 0 {
		return "-"
	}
	return fmt.Sprintf(format, value)
}

// ofPleach is the ratio of medians among as many members.
func ofPleach(r broadcast.Result, results []broadcast.Result) string {
	for _, p := range results {
		if p.System == "pleach" && p.Members == r.Members && p.P50 > 0 && r.P50 > 0 {
			return fmt.Sprintf("%.2f×", r.P50/p.P50)
		}
	}
	return "-"
}

// versions says what was measured.
func versions() string {
	var all []string
	for _, p := range peers() {
		all = append(all, p.Name+" "+p.version())
	}
	return strings.Join(all, ", ")
}
