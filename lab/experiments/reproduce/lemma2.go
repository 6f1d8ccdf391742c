package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Corrected Trees' Lemma 2 and Corollary 1: what checked correction costs when
// no process is dead.

func lemma2() Experiment {
	return Experiment{
		Name: "ct-lemma-2", Paper: trees,
		Title: "Checked correction without faults: time and messages by L and o",
		About: "Binomial tree, P = 1,024, synchronized checked correction, L = 1 to 8 and o = 1 to 3, against the printed formulas.",
		Source: &Source{
			Name: "ct-lemma-2", Seed: 1, Tables: []string{"costs"},
			Cost: [sizes]float64{0.05, 0.1, 0.1}, measure: measureLemma2,
		},
		charts: drawLemma2, claims: judgeLemma2,
	}
}

func measureLemma2(j *job) (Data, error) {
	var cells []cell
	for o := protocol.Time(1); o <= 3; o++ {
		for l := protocol.Time(1); l <= 8; l++ {
			cells = append(cells, cell{labels: []any{int(l), int(o)}, scenario: experiments.Scenario{
				Size: 1024, L: l, O: o, Dissemination: "tree", Shape: topology.Binomial(),
				Correction: "checked", Start: broadcast.Synchronized, Runs: 1, Seed: j.seed,
			}})
		}
	}
	t := newTable("L", "o", "time", "printed_time", "messages", "printed_messages", "runs")
	return j.tabulate(cells, Data{"costs": t}, func(c cell, r *experiments.Report) {
		l, o := c.labels[0].(int), c.labels[1].(int)
		t.add(l, o, r.CorrectionTime.Mean, 4*o+l+l/o*o, r.Messages.Correction/1024, 3+l/o, r.Runs)
	})
}

func drawLemma2(d Data) []chart.Chart {
	c := chart.Chart{
		Name: "ct-lemma-2", Title: "Checked correction without faults",
		X: chart.Axis{Label: "latency L [steps]", Ticks: chart.At(1, 2, 3, 4, 5, 6, 7, 8)},
		Y: chart.Axis{Label: "correction time [steps]"},
	}
	for o := 1; o <= 3; o++ {
		t := d["costs"].where("o", o)
		c.Series = append(c.Series,
			plainLine(fmt.Sprintf("o = %d, Lemma 2", o), t.points("L", "printed_time", "", ""), o-1),
			chart.Series{
				Name: fmt.Sprintf("o = %d, simulated", o), Kind: chart.Dots, Color: o - 1,
				Points: t.points("L", "time", "", ""),
			})
	}
	return []chart.Chart{c}
}

func judgeLemma2(d Data) []Claim {
	t := d["costs"]
	ours := t.where("L", 2).where("o", 1)
	var odd, agreeing, all int
	for _, row := range t.Rows {
		r := &Table{Columns: t.Columns, Rows: [][]string{row}}
		divides := int(r.number("L"))%int(r.number("o")) == 0
		same := r.number("time") == r.number("printed_time") && r.number("messages") == r.number("printed_messages")
		switch {
		case divides && same:
			agreeing++
			all++
		case divides:
			all++
		case !same:
			odd++
		}
	}
	example := t.where("L", 3).where("o", 2)
	return []Claim{
		{
			where: "Lemma 2", Claim: "time of checked correction without faults, L = 2, o = 1", Stated: "8 steps",
			Measured: figure(ours.number("time"), 0) + " steps", Verdict: verdict(ours.number("time") == 8), Runs: 1,
		},
		{
			where: "Corollary 1, §4.1", Claim: "correction messages per process without faults, L = 2, o = 1", Stated: "5",
			Measured: figure(ours.number("messages"), 2), Verdict: verdict(ours.number("messages") == 5), Runs: 1,
		},
		{
			where: "Lemma 2, Corollary 1", Claim: "4o + L + ⌊L/o⌋·o steps and 3 + ⌊L/o⌋ messages where o divides L",
			Stated:   "always",
			Measured: fmt.Sprintf("%d of %d cases", agreeing, all), Verdict: verdict(agreeing == all), Runs: all,
		},
		{
			where: "Lemma 2, Corollary 1", Claim: "the same where o does not divide L, as for L = 3, o = 2",
			Stated:   "13 steps, 4 messages",
			Measured: fmt.Sprintf("%.0f steps, %.0f messages", example.number("time"), example.number("messages")),
			Verdict:  verdict(odd == 0), Runs: odd,
			Note: "the formulas need ⌈L/o⌉: the last send starts, not ends, at the multiple of o below 3o + L (docs/research/findings.md)",
		},
	}
}
