package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/protocol"
)

// Overlapped checked correction: Corrected Trees evaluates checked correction
// only with a synchronized start, which needs a common clock.

func openOverlapped() Experiment {
	return Experiment{
		Name: "open-overlapped", Paper: leftOpen,
		Title: "Checked correction that starts as soon as a process is through with its part of the tree",
		About: "P = 65,536, L = 2, o = 1, four trees. Corrected Trees evaluates checked correction synchronized only; without a common clock it has to overlap with dissemination. " +
			"Processes that correction reaches before the tree either take part in correction or only pass the message on to their children.",
		Source: &Source{
			Name: "open-overlapped", Seed: 1, Tables: []string{"times"},
			Cost: [sizes]float64{0.3, 7, 55}, measure: measureOverlapped,
		},
		charts: drawOverlapped, claims: judgeOverlapped,
	}
}

// overlappedModes are the ways to start.
var overlappedModes = []struct {
	name  string
	start broadcast.Start
	relay bool
}{
	{"synchronized", broadcast.Synchronized, false},
	{"overlapped", broadcast.Overlapped, false},
	{"overlapped, early ones only relay", broadcast.Overlapped, true},
}

var overlappedRates = []float64{0, 0.001, 0.01, 0.02, 0.04}

func measureOverlapped(j *job) (Data, error) {
	size := protocol.Rank(j.pick(256, 65536, 65536))
	var cells []cell
	for _, mode := range overlappedModes {
		for i, shape := range experiments.Table1Shapes(2, 1) {
			for _, rate := range overlappedRates {
				runs := j.pick(1, 3, 30)
				if rate == 0 {
					runs = 1
				}
				cells = append(cells, cell{[]any{mode.name, shape, 100 * rate}, experiments.Scenario{
					Size: size, L: 2, O: 1, Dissemination: "tree", Shape: shape, Correction: "checked", Start: mode.start,
					EarlyOnlyRelay: mode.relay,
					Dead:           int(rate * float64(size)), Runs: runs, Seed: j.seed + uint64(i),
				}, float64(runs)})
			}
		}
	}
	t := newTable("start", "broadcast", "dead_percent", "coloring", "quiescence", "messages_per_process",
		"unreached", "runs")
	return j.tabulate(cells, Data{"times": t}, func(c cell, r *experiments.Report) {
		t.add(c.labels[0], c.labels[1], c.labels[2], r.Coloring.Mean, r.Quiescence.Mean, r.MessagesPerProcess.Mean,
			r.Unreached.Runs, r.Runs)
	})
}

func drawOverlapped(d Data) []chart.Chart {
	charts := []chart.Chart{
		{
			Name: "open-overlapped-quiescence", Title: "Checked correction, overlapped and synchronized (P = 64K)",
			Y: chart.Axis{Label: "quiescence latency [steps]"},
		},
		{
			Name: "open-overlapped-messages", Title: "Checked correction, overlapped and synchronized (P = 64K)",
			Y: chart.Axis{Label: "messages per process"},
		},
	}
	for n, column := range []string{"quiescence", "messages_per_process"} {
		c := &charts[n]
		c.X = chart.Axis{Label: "dead processes [%]", Ticks: chart.At(0, 1, 2, 3, 4)}
		for i, b := range broadcastNames[:4] {
			t := d["times"].where("broadcast", b.name)
			c.Series = append(c.Series,
				chart.Series{
					Name: b.title + ", synchronized", Kind: chart.Dashed, Color: i,
					Points: t.where("start", "synchronized").points("dead_percent", column, "", ""),
				},
				chart.Series{Name: b.title + ", overlapped", Color: i, Points: t.where("start", "overlapped").points("dead_percent",
					column, "", "")})
		}
	}
	return charts
}

func judgeOverlapped(d Data) []Claim {
	t := d["times"]
	at := func(mode, tree string, percent float64, column string) float64 {
		return t.where("start", mode).where("broadcast", tree).where("dead_percent", percent).number(column)
	}
	change := func(column string, percent float64, mode string) string {
		var changes []float64
		for _, b := range broadcastNames[:4] {
			changes = append(changes, at(mode, b.name, percent, column)/at("synchronized", b.name, percent, column)-1)
		}
		return span(func(v float64) string { return fmt.Sprintf("%+.1f%%", 100*v) }, changes...)
	}
	claims := []Claim{{
		where: "Corrected Trees §3.3",
		Claim: "overlapped checked correction: runs that leave a live process without the message", Stated: "not evaluated",
		Measured: figure(t.sum("unreached"), 0), Verdict: Answered, Runs: t.runs(),
	}}
	for _, percent := range []float64{0, 4} {
		for _, mode := range overlappedModes[1:] {
			claims = append(claims, Claim{
				where:  "Corrected Trees §3.3",
				Claim:  fmt.Sprintf("checked correction %s instead of synchronized, %g%% dead, four trees", mode.name, percent),
				Stated: "not evaluated",
				Measured: fmt.Sprintf("quiescence %s, coloring %s, messages %s", change("quiescence", percent, mode.name),
					change("coloring", percent, mode.name), change("messages_per_process", percent, mode.name)),
				Verdict: Answered, Runs: t.where("dead_percent", percent).runs(),
			})
		}
	}
	return claims
}
