package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Delayed correction, of which Corrected Trees §3.3 says: "We do not evaluate
// delayed correction further, because the appropriate delay is
// application-specific."

func openDelayed() Experiment {
	return Experiment{
		Name: "open-delayed", Paper: leftOpen,
		Title: "Delayed correction, by its delay",
		About: "P = 65,536, L = 2, o = 1, binomial tree. Every process sends to its left neighbor, then waits; one that has not heard from the right by then asks there. " +
			"Corrected Trees (§3.3) proposes it and does not evaluate it. Beside it stands checked correction on the same dead. " +
			"Coloring is when the last live process has the message; what follows only finds out that no process is left.",
		Source: &Source{
			Name: "open-delayed", Seed: 1, Tables: []string{"delays"},
			Cost: [sizes]float64{0.3, 9, 55}, measure: measureDelayed,
		},
		charts: drawDelayed, claims: judgeDelayed,
	}
}

var (
	delays       = []int{0, 2, 4, 6, 8, 12, 16, 24, 32}
	delayedRates = []float64{0, 0.01, 0.04}
	startModes   = []broadcast.Start{broadcast.Synchronized, broadcast.Overlapped}
)

// noDelay is the delay in the rows of checked correction.
const noDelay = -1

func measureDelayed(j *job) (Data, error) {
	size := protocol.Rank(j.pick(256, 65536, 65536))
	var cells []cell
	for _, start := range startModes {
		for _, rate := range delayedRates {
			s := experiments.Scenario{
				Size: size, L: 2, O: 1, Dissemination: "tree", Shape: topology.Binomial(), Start: start,
				Dead: int(rate * float64(size)), Runs: j.pick(1, 3, 20), Seed: j.seed, Correction: "checked",
			}
			if rate == 0 {
				s.Runs = 1
			}
			cells = append(cells, cell{[]any{start, 100 * rate, noDelay}, s, float64(s.Runs)})
			for _, delay := range delays {
				s.Correction = fmt.Sprintf("delayed:%d", delay)
				cells = append(cells, cell{[]any{start, 100 * rate, delay}, s, float64(s.Runs)})
			}
		}
	}
	t := newTable("start", "dead_percent", "delay", "coloring", "quiescence", "correction_per_process",
		"unreached", "runs")
	return j.tabulate(cells, Data{"delays": t}, func(c cell, r *experiments.Report) {
		t.add(c.labels[0], c.labels[1], c.labels[2], r.Coloring.Mean, r.Quiescence.Mean,
			r.Messages.Correction/float64(size), r.Unreached.Runs, r.Runs)
	})
}

// delayedRows are those of a start and a rate: by delay, and checked correction's.
func delayedRows(t *Table, start broadcast.Start, percent float64) (delayed, checked *Table) {
	t = t.where("start", start).where("dead_percent", percent)
	delayed = newTable(t.Columns...)
	for _, delay := range delays {
		delayed.Rows = append(delayed.Rows, t.where("delay", delay).Rows...)
	}
	return delayed, t.where("delay", noDelay)
}

func drawDelayed(d Data) []chart.Chart {
	charts := []chart.Chart{
		{
			Name: "open-delayed-coloring", Title: "Delayed correction: coloring latency",
			Y: chart.Axis{Label: "coloring latency [steps]"},
		},
		{
			Name: "open-delayed-messages", Title: "Delayed correction: messages",
			Y: chart.Axis{Label: "correction messages per process"},
		},
	}
	for i, column := range []string{"coloring", "correction_per_process"} {
		c := &charts[i]
		c.X = chart.Axis{Label: "delay [steps]"}
		for color, rate := range delayedRates {
			for _, start := range startModes {
				kind := map[broadcast.Start]chart.Kind{
					broadcast.Overlapped:   chart.Line,
					broadcast.Synchronized: chart.Dashed,
				}[start]
				t, checked := delayedRows(d["delays"], start, 100*rate)
				c.Series = append(c.Series, chart.Series{
					Name: fmt.Sprintf("%v, %g%% dead", start, 100*rate), Kind: kind, Color: color,
					Points: t.points("delay", column, "", ""),
				})
				if start == broadcast.Overlapped && rate == 0.04 {
					c.Series = append(c.Series, chart.Series{
						Name: fmt.Sprintf("checked, overlapped, %g%% dead", 100*rate), Kind: chart.Rule, Color: color,
						Points: []chart.Point{{Y: checked.number(column)}},
					})
				}
			}
		}
	}
	return charts
}

// delayedEnough is a delay after which, without dead, no process asks: a neighbor's
// message is there a hop after the own was sent.
const delayedEnough = 4

func judgeDelayed(d Data) []Claim {
	t := d["delays"]
	unreached := t.sum("unreached")
	fine, checked := delayedRows(t, broadcast.Synchronized, 0)
	lean := fine.where("delay", delayedEnough).number("correction_per_process")
	claims := []Claim{
		{
			where:    "Corrected Trees §3.3",
			Claim:    "delayed correction: runs that leave a live process without the message, whatever the delay",
			Stated:   "liveness is still guaranteed",
			Measured: figure(unreached, 0), Verdict: verdict(unreached == 0), Runs: t.runs(),
		},
		{
			where: "Corrected Trees §3.3", Claim: "delayed correction without dead: correction messages per process",
			Stated: "minimizes the number of messages",
			Measured: fmt.Sprintf("%s with a delay of %d steps or more; checked %s", figure(lean, 2), delayedEnough,
				figure(checked.number("correction_per_process"), 2)),
			Verdict: verdict(lean == 1), Runs: fine.runs(),
		},
	}
	for _, start := range startModes {
		slow, checked := delayedRows(t, start, 4)
		first, last := slow.where("delay", delayedEnough), slow.where("delay", delays[len(delays)-1])
		claims = append(claims, Claim{
			where: "Corrected Trees §3.3", Claim: fmt.Sprintf("delayed %v correction, 4%% dead: coloring latency", start),
			Stated: "higher latency when a failure does occur",
			Measured: fmt.Sprintf(
				"%.1f steps with a delay of %d, %.1f with %d; checked %.1f (messages %.2f, %.2f and %.2f per process)",
				first.number("coloring"), delayedEnough,
				last.number("coloring"), delays[len(delays)-1], checked.number("coloring"),
				first.number("correction_per_process"), last.number("correction_per_process"),
				checked.number("correction_per_process")),
			Verdict: Answered, Runs: slow.runs(),
		})
	}
	return claims
}
