package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pleach-go/pleach/lab/bench/collectives"
)

// writeCollectivesTable writes results for people.
func writeCollectivesTable(w io.Writer, results []collectives.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %7s %9s  %-19s %7s %9s %9s %9s %9s %9s %10s %10s %9s\n",
		"operation", "members", "size", "system", "rounds", "p10", "p50", "p99", "idle", "cpu", "of openmpi", "of its shm",
		"of plain")
	last := ""
	for _, r := range results {
		if r.Operation != last && last != "" {
			b.WriteString("\n")
		}
		last = r.Operation
		system := r.System
		if r.FailureMode != "" {
			system += " " + r.FailureMode
		}
		fmt.Fprintf(&b, "%-10s %7d %9d  %-19s %7d %9.1f %9.1f %9.1f %9.1f %9.1f %10s %10s %9s\n",
			r.Operation, r.Members, r.Size, system, r.Rounds, r.P10, r.P50, r.P99, r.IdleP50, r.Processor, times(r.Ratio),
			times(r.OfShared), times(r.OfReport))
	}
	b.WriteString("\nTimes are in µs.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// times is a ratio, if there is one.
func times(ratio float64) string {
	if ratio == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f×", ratio)
}
