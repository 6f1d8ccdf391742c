package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Corrected Gossip's Figure 1: how gossip colors processes.

func gossipFigure1() Experiment {
	return Experiment{
		Name: "cg-figure-1", Paper: gossip,
		Title: "Expected number of g-nodes and longest uncolored chain",
		About: "L = O = 1, N = n = 1,024: Eq. 1, and simulated gossip without correction that stops sending so that the last message is received at t. " +
			"Receives do not wait for each other, as in that paper's model.",
		Source: &Source{
			Name: "cg-figure-1", Seed: 1, Tables: []string{"colored"},
			Cost: [sizes]float64{0.1, 2, 30}, measure: measureGossipFigure1,
		},
		charts: drawGossipFigure1, claims: judgeGossipFigure1,
	}
}

// missed is the probability to miss a process that the paper aims at: an even
// chance that a million runs reach all.
const missed = 6.93e-7

// gossipModel is the model of the paper's small examples.
func gossipModel(miss float64) logp.GossipModel {
	return logp.GossipModel{Size: 1024, Live: 1024, L: 1, O: 1, Miss: miss}
}

func measureGossipFigure1(j *job) (Data, error) {
	const from, to = 6, 34
	var cells []cell
	for t := protocol.Time(from); t <= to; t++ {
		cells = append(cells, cell{labels: []any{int64(t)}, scenario: experiments.Scenario{
			// What is sent by T is received by T + L + O.
			Size: 1024, L: 1, O: 1, FreeReceive: true, Dissemination: "gossip", GossipTime: t - 2,
			Correction: "none", Runs: j.pick(3, 200, 3000), Seed: j.seed,
		}})
	}
	model := gossipModel(0.01)
	expected := model.ColoredAfter(to)
	table := newTable("t", "colored", "model", "longest_chain_p99", "model_chain_p99", "runs")
	return j.tabulate(cells, Data{"colored": table}, func(c cell, r *experiments.Report) {
		t := c.labels[0].(int64)
		colored := 1024 - float64(r.Unreached.Processes)/float64(r.Runs)
		table.add(t, colored, expected[t], r.MaxGap.P99, int64(model.Gap(expected[t])), r.Runs)
	})
}

func drawGossipFigure1(d Data) []chart.Chart {
	t := d["colored"]
	return []chart.Chart{{
		Name: "cg-figure-1", Title: "Gossip, L = O = 1, N = 1,024",
		X: chart.Axis{Label: "time t"},
		Y: chart.Axis{Label: "processes"},
		Series: []chart.Series{
			plainLine("colored, Eq. 1", t.points("t", "model", "", ""), 0),
			{Name: "colored, simulated", Kind: chart.Dots, Color: 1, Points: t.points("t", "colored", "", "")},
			{Name: "longest chain (99%), simulated", Color: 2, Points: t.points("t", "longest_chain_p99", "", "")},
			{Name: "opt", Kind: chart.Rule, Color: chart.Gray, Points: []chart.Point{{X: float64(optimalTime(1024, 1, 1))}}},
		},
	}}
}

// optimalTime is how long the best tree takes.
func optimalTime(size protocol.Rank, l, o protocol.Time) protocol.Time {
	tree, err := topology.New(topology.Optimal(l, o), topology.Interleaved, size, 0)
	if err != nil {
		return 0
	}
	return topology.FinishTime(tree, l, o)
}

func judgeGossipFigure1(d Data) []Claim {
	t := d["colored"]
	half := halfTime(t, "colored")
	opt := float64(optimalTime(1024, 1, 1))
	worst := 0.0
	model, colored := t.numbers("model"), t.numbers("colored")
	for i := range model {
		worst = max(worst, (model[i]-colored[i])/1024, (colored[i]-model[i])/1024)
	}
	return []Claim{
		{
			where: "§III-A, Figure 1", Claim: "time at which half of the nodes are colored", Stated: "≈ 18",
			Measured: fmt.Sprintf("%.1f (Eq. 1: %.1f)", half, halfTime(t, "model")), Verdict: verdict(near(half, 18, 1)),
			Runs: t.runs(),
		},
		{
			where: "§III-A, Figure 1", Claim: "time the optimal tree requires", Stated: "20",
			Measured: figure(opt, 0), Verdict: verdict(near(opt, 20, 1)), Runs: 1,
			Note: "the latest receive of the optimal tree for L = o = 1 is over at this time; the paper does not say whether it counts the last receive's overhead",
		},
		{
			where: "Lemma 1", Claim: "expected number of colored nodes follows Eq. 1", Stated: "exactly",
			Measured: "within " + percent(worst, 1) + " of N", Verdict: verdict(worst < 0.06), Runs: t.runs(),
			Note: "Eq. 1 puts an expectation into a power, so it is a little ahead of the simulation",
		},
	}
}

// halfTime is when a column passes half of all, between rows.
func halfTime(t *Table, column string) float64 {
	times, values := t.numbers("t"), t.numbers(column)
	for i := 1; i < len(values); i++ {
		if values[i] >= 512 {
			return times[i-1] + (512-values[i-1])/(values[i]-values[i-1])
		}
	}
	return 0
}
