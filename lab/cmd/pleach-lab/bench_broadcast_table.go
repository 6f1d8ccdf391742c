package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

// writeBroadcastTable writes results for people, each with its ratio to bare with as
// many dead.
func writeBroadcastTable(w io.Writer, c *broadcast.Config, results []broadcast.Result) error {
	var b strings.Builder
	where, what := "in one process", "one at a time"
	if c.Processes {
		where = "in processes of their own"
	}
	if c.Rate {
		what = "back to back"
	}
	fmt.Fprintf(&b, "%d bytes to %d members %s, %d rounds %s; µs\n\n", c.Size, c.Members, where, results[0].Rounds, what)
	fmt.Fprintf(&b, "%-7s %5s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s\n",
		"system", "dead", "complete", "p10", "p50", "p99", "max", "of bare", "a second", "messages", "bytes", "cpu")
	for _, r := range results {
		fmt.Fprintf(&b, "%-7s %5d %9d", r.System, r.Dead, r.Complete)
		for _, time := range []float64{r.P10, r.P50, r.P99, r.Max} {
			if r.Max == 0 { // no round was complete
				fmt.Fprintf(&b, " %9s", "-")
			} else {
				fmt.Fprintf(&b, " %9.1f", time)
			}
		}
		fmt.Fprintf(&b, " %9s %9.0f %9.2f %9.0f %9.0f\n", ofBare(r, results, c.Rate), r.PerSecond, r.Messages, r.Bytes, r.CPU)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ofBare is the ratio of medians or rates.
func ofBare(r broadcast.Result, results []broadcast.Result, rate bool) string {
	for _, bare := range results {
		if bare.System != "bare" || bare.Dead != r.Dead || r.System == "bare" {
			continue
		}
		switch {
		case rate && bare.PerSecond > 0 && r.PerSecond > 0:
			return fmt.Sprintf("%.2f×", r.PerSecond/bare.PerSecond)
		case !rate && bare.P50 > 0 && r.P50 > 0:
			return fmt.Sprintf("%.2f×", r.P50/bare.P50)
		}
	}
	return "-"
}
