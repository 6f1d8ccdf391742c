package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Corrected Trees' Figure 1b: what the numbering of a tree does to correction.

func figure1b() Experiment {
	return Experiment{
		Name: "ct-figure-1b", Paper: trees,
		Title: "Expected correction time of in-order and interleaved binomial trees",
		About: "P = 65,536, L = 2, o = 1, synchronized checked correction, 0 to 32 random dead. The in-order mean has a heavy tail: " +
			"it hangs on the few runs in which a process near the root is dead. \"near the root\" is the root's child with the largest subtree.",
		Source: &Source{
			Name: "ct-figure-1b", Seed: 1, Tables: []string{"times"},
			Cost: [sizes]float64{0.2, 16, 160}, measure: measureFigure1b,
		},
		charts: drawFigure1b, claims: judgeFigure1b,
	}
}

// nearRoot is the label of the run in which the root's largest child is dead.
const nearRoot = "near the root"

func measureFigure1b(j *job) (Data, error) {
	size := protocol.Rank(j.pick(512, 65536, 65536))
	var cells []cell
	for _, order := range []topology.Order{topology.InOrder, topology.Interleaved} {
		s := experiments.Scenario{
			Size: size, L: 2, O: 1, Dissemination: "tree", Shape: topology.Binomial(), Order: order,
			Correction: "checked", Start: broadcast.Synchronized, Seed: j.seed, Runs: 1,
		}
		cells = append(cells, cell{labels: []any{order, 0}, scenario: s})
		runs := j.pick(5, 60, 600)
		weight := float64(runs)
		if order == topology.Interleaved { // cheap, as the sparse engine does it
			runs, weight = j.pick(5, 2000, 20_000), 1
		}
		for _, dead := range []int{1, 2, 4, 8, 16, 32} {
			s.Dead, s.Runs = dead, runs
			cells = append(cells, cell{[]any{order, dead}, s, weight})
		}
		s.Dead, s.Runs = 0, 1
		s.Fixed = logp.Faults{Dead: []protocol.Rank{largestChild(order, size)}}
		cells = append(cells, cell{labels: []any{order, nearRoot}, scenario: s})
	}
	t := newTable("order", "dead", "correction_time", "p5", "p95", "max", "max_gap", "runs")
	return j.tabulate(cells, Data{"times": t}, func(c cell, r *experiments.Report) {
		d := r.CorrectionTime
		t.add(c.labels[0], c.labels[1], d.Mean, d.P5, d.P95, d.Max, r.MaxGap.Max, r.Runs)
	})
}

// largestChild is the root's child with the most below it.
func largestChild(order topology.Order, size protocol.Rank) protocol.Rank {
	if order == topology.InOrder {
		return size / 2
	}
	return 1
}

func drawFigure1b(d Data) []chart.Chart {
	c := chart.Chart{
		Name: "ct-figure-1b", Title: "Correction time and numbering (P = 64K)",
		X: chart.Axis{Label: "expected correction time [steps]", Log: true, Ticks: chart.At(8, 10, 20, 50, 100, 200, 500)},
		Y: chart.Axis{Label: "dead processes", Log: true, Ticks: chart.At(1, 2, 4, 8, 16, 32)},
	}
	for i, order := range []topology.Order{topology.InOrder, topology.Interleaved} {
		t := random(d["times"].where("order", order))
		c.Series = append(c.Series, chart.Series{
			Name: []string{"in-order", "interleaved"}[i], Color: i,
			Points: t.points("correction_time", "dead", "", ""),
		})
	}
	c.Series = append(c.Series, chart.Series{
		Name: "10.5 steps", Kind: chart.Rule, Color: chart.Gray,
		Points: []chart.Point{{X: 10.5}},
	})
	return []chart.Chart{c}
}

// random leaves only the rows with random dead.
func random(t *Table) *Table {
	some := newTable(t.Columns...)
	i := t.index("dead")
	for _, row := range t.Rows {
		if row[i] != nearRoot && row[i] != "0" {
			some.Rows = append(some.Rows, row)
		}
	}
	return some
}

func judgeFigure1b(d Data) []Claim {
	t := d["times"]
	inorder, interleaved := t.where("order", topology.InOrder), t.where("order", topology.Interleaved)
	without := interleaved.where("dead", 0).number("correction_time")
	worst := interleaved.where("dead", 32).number("correction_time")
	one, many := inorder.where("dead", 1).number("correction_time"), inorder.where("dead", 32).number("correction_time")
	top := inorder.where("dead", nearRoot).number("correction_time")
	return []Claim{
		{
			where: "§1", Claim: "correction time without faults", Stated: "8 steps",
			Measured: figure(without, 0) + " steps", Verdict: verdict(without == 8), Runs: 2,
		},
		{
			where: "§1, Figure 1b", Claim: "expected correction time of an interleaved tree does not exceed",
			Stated:   "10.5 steps",
			Measured: figure(worst, 2) + " steps with 32 dead", Verdict: verdict(worst <= 10.5),
			Runs: interleaved.where("dead", 32).runs(),
		},
		{
			where: "§1, Figure 1b", Claim: "expected correction time of an in-order tree grows with the number of faults",
			Stated:   "grows",
			Measured: fmt.Sprintf("%.1f steps with 1 dead, %.1f with 32", one, many), Verdict: verdict(many > 2*one),
			Runs: random(inorder).runs(),
		},
		{
			where: "§1", Claim: "one dead process near the root of an in-order tree makes correction longer than on average",
			Stated:   "by orders of magnitude (100 times and more)",
			Measured: fmt.Sprintf("%.0f times the mean of one dead (%s steps)", top/one, figure(top, 0)),
			Verdict:  verdict(top > 100*one), Runs: 1,
		},
	}
}
