package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
)

// writeTable writes a report for people.
func writeTable(w io.Writer, about string, r *experiments.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", about)
	fmt.Fprintf(&b, "%-20s %7s %7s %7s %7s %7s %7s %7s\n", "", "mean", "p5", "p50", "p95", "p99", "p99.9", "max")
	writeRow(&b, "coloring latency", r.Coloring, 0)
	writeRow(&b, "quiescence latency", r.Quiescence, 0)
	writeRow(&b, "correction time", r.CorrectionTime, 0)
	writeRow(&b, "max gap", r.MaxGap, 0)
	writeRow(&b, "messages per process", r.MessagesPerProcess, 2)

	fmt.Fprintf(&b, "\nunreached  %s\n", unreached(r))
	fmt.Fprintf(&b, "messages   %s\n", messages(r.Messages))
	fmt.Fprintf(&b, "runs       %d in %.3g s", r.Runs, r.Seconds)
	if total := r.Messages.Total * float64(r.Runs); total > 0 {
		fmt.Fprintf(&b, ", %.3g ns per message", r.Seconds*1e9/total)
	}
	fmt.Fprintf(&b, "\nengine     %s, %.3g MB of memory\n", r.Engine, float64(r.Memory)/1e6)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return cli.Failure(err)
	}
	return nil
}

// writeRow writes one figure. Its percentiles are values that occurred, so they
// need no more decimals than the figure has.
func writeRow(b *strings.Builder, name string, d logp.Distribution, decimals int) {
	fmt.Fprintf(b, "%-20s %7.2f", name, d.Mean)
	for _, value := range []float64{d.P5, d.P50, d.P95, d.P99, d.P999, d.Max} {
		fmt.Fprintf(b, " %7.*f", decimals, value)
	}
	b.WriteString("\n")
}

func unreached(r *experiments.Report) string {
	if r.Unreached.Runs == 0 {
		return "none: every live process got the message"
	}
	return fmt.Sprintf("%d live processes in %d of %d runs", r.Unreached.Processes, r.Unreached.Runs, r.Runs)
}

// messages names the phases that sent anything.
func messages(m experiments.Messages) string {
	var parts []string
	for _, phase := range []struct {
		name string
		mean float64
	}{{"dissemination", m.Dissemination}, {"correction", m.Correction}, {"acknowledgment", m.Acknowledgment}} {
		if phase.mean > 0 {
			parts = append(parts, fmt.Sprintf("%.1f %s", phase.mean, phase.name))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s per run", strings.Join(parts, " + "))
}
