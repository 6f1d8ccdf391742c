package reproduce

import (
	"fmt"
	"strings"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Dying while correction runs: Corrected Gossip proves that failure-proof
// correction survives it and that checked does not, and calls what may happen
// then "improbable". How improbable?

func openDying() Experiment {
	return Experiment{
		Name: "open-dying", Paper: leftOpen,
		Title: "Processes that die while correction runs",
		About: "P = 1,024, L = 2, o = 1, binomial tree, 4% dead from the start; 1 to 32 more die at random moments from the start of a synchronized correction until 20 steps later. " +
			"A run is incomplete if a process that lives to the end never gets the message. A process that waits to hear from one that has died keeps sending until all is over. Corrected Trees takes all failures to happen before; " +
			"Corrected Gossip names the danger (§III-C) and a protocol against it (§III-D), but no probabilities.",
		Source: &Source{
			Name: "open-dying", Seed: 1, Tables: []string{"misses"},
			Cost: [sizes]float64{0.3, 6, 110}, measure: measureDying,
		},
		charts: drawDying, claims: judgeDying,
	}
}

var (
	dyingCounts = []int{0, 1, 2, 4, 8, 16, 32}
	dyingRules  = []struct{ name, title string }{
		{"opportunistic:4", "opportunistic, 4 per side"},
		{"checked", "checked"},
		{"delayed:8", "delayed by 8"},
		{"failure-proof:1", "failure-proof, f = 1"},
		{"failure-proof:4", "failure-proof, f = 4"},
	}
)

func measureDying(j *job) (Data, error) {
	const window = 20
	size := protocol.Rank(j.pick(128, 1024, 1024))
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, size, 0)
	if err != nil {
		return nil, err
	}
	start := topology.FinishTime(tree, 2, 1)
	var cells []cell
	for _, rule := range dyingRules {
		for _, dying := range dyingCounts {
			cells = append(cells, cell{labels: []any{rule.name, dying}, scenario: experiments.Scenario{
				Size: size, L: 2, O: 1, Dissemination: "tree", Shape: topology.Binomial(), Correction: rule.name,
				Start: broadcast.Synchronized,
				Dead:  int(size) * 4 / 100, Dying: dying, DyingFrom: start, DyingUntil: start + window, Runs: j.pick(2, 100, 2000),
				Seed: j.seed,
			}})
		}
	}
	t := newTable("correction", "dying", "incomplete", "missed", "quiescence", "messages_per_process", "runs")
	return j.tabulate(cells, Data{"misses": t}, func(c cell, r *experiments.Report) {
		t.add(c.labels[0], c.labels[1], r.Unreached.Runs, r.Unreached.Processes, r.Quiescence.Mean,
			r.MessagesPerProcess.Mean, r.Runs)
	})
}

func drawDying(d Data) []chart.Chart {
	x := chart.Axis{Label: "processes that die during correction", Log: true, Ticks: chart.At(1, 2, 4, 8, 16, 32)}
	misses := chart.Chart{
		Name: "open-dying", Title: "Dying during correction (P = 1,024, 4% dead before)",
		X: x, Y: chart.Axis{Label: "incomplete runs [%]"},
	}
	times := chart.Chart{
		Name: "open-dying-quiescence", Title: "Dying during correction: until all is over",
		X: x, Y: chart.Axis{Label: "mean quiescence latency [steps]", Log: true, Ticks: chart.At(50, 100, 200, 500)},
	}
	for i, rule := range dyingRules {
		var incomplete, quiescence []chart.Point
		t := d["misses"].where("correction", rule.name)
		for _, dying := range dyingCounts[1:] {
			row := t.where("dying", dying)
			incomplete = append(incomplete,
				chart.Point{X: float64(dying), Y: 100 * row.number("incomplete") / row.number("runs")})
			quiescence = append(quiescence, chart.Point{X: float64(dying), Y: row.number("quiescence")})
		}
		misses.Series = append(misses.Series, chart.Series{Name: rule.title, Color: i, Points: incomplete})
		times.Series = append(times.Series, chart.Series{Name: rule.title, Color: i, Points: quiescence})
	}
	return []chart.Chart{misses, times}
}

func judgeDying(d Data) []Claim {
	t := d["misses"]
	var claims []Claim
	for _, f := range []int{1, 4} {
		rows := t.where("correction", fmt.Sprintf("failure-proof:%d", f))
		var incomplete, runs float64
		for _, dying := range dyingCounts {
			if dying <= f {
				incomplete += rows.where("dying", dying).number("incomplete")
				runs += rows.where("dying", dying).number("runs")
			}
		}
		claims = append(claims, Claim{
			where: "Corrected Gossip, Claim 4",
			Claim: fmt.Sprintf("failure-proof correction, f = %d: incomplete runs while up to f die during it", f), Stated: "0",
			Measured: figure(incomplete, 0), Verdict: verdict(incomplete == 0), Runs: int(runs),
		})
	}
	for _, rule := range dyingRules {
		var shares, times []string
		rows := t.where("correction", rule.name)
		for _, dying := range []int{1, 8, 32} {
			row := rows.where("dying", dying)
			shares = append(shares, percent(row.number("incomplete")/row.number("runs"), 2))
			times = append(times, figure(row.number("quiescence"), 0))
		}
		none := rows.where("dying", 0)
		claims = append(claims, Claim{
			where: "Corrected Gossip §III-C", Claim: rule.title + ": incomplete runs with 1, 8 and 32 dying during correction",
			Stated: "improbable",
			Measured: fmt.Sprintf("%s; quiescence %s steps (without any %s, with %s messages per process)",
				strings.Join(shares, ", "),
				strings.Join(times, ", "), figure(none.number("quiescence"), 0), figure(none.number("messages_per_process"), 2)),
			Verdict: Answered, Runs: rows.runs(),
		})
	}
	return claims
}
