package reproduce

import (
	"fmt"
	"math/rand/v2"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Correlated failures: whole racks that are dead. Corrected Trees §2.1 assumes
// independence, which "can be achieved by numbering tree nodes in a random
// manner", or by a ring "structured in a way that nodes having correlated failure
// probabilities stay far away from each other", and leaves the analysis out.

func openRacks() Experiment {
	return Experiment{
		Name: "open-racks", Paper: leftOpen,
		Title: "Whole racks dead, and how ranks are dealt to racks",
		About: "P = 65,536, L = 2, o = 1, binomial tree, synchronized checked correction; racks of 48 (the last one smaller), of which 1 to 54 are dead, the root's never. " +
			"In order: a rack has consecutive ranks, as most launchers number. Random: ranks are dealt by chance. By rack: one to each rack in turn, so that those of a rack " +
			"are as far from each other on the ring as can be. Independent: as many dead, chosen one by one.",
		Source: &Source{
			Name: "open-racks", Seed: 1, Tables: []string{"racks"},
			Cost: [sizes]float64{0.2, 4, 80}, measure: measureRacks,
		},
		charts: drawRacks, claims: judgeRacks,
	}
}

const rackSize = 48

var (
	deadRacks      = []int{1, 2, 4, 8, 16, 32, 54}
	rackPlacements = []struct{ name, title string }{
		{"in-order", "in order"}, {"random", "random"}, {"by-rack", "by rack"}, {"independent", "independent"},
	}
)

// drawRack says which ranks are dead in a run: all of some racks.
func drawRack(placement string, size protocol.Rank, racks int) func(seed uint64) []protocol.Rank {
	all := int(size) / rackSize
	return func(seed uint64) (dead []protocol.Rank) {
		rng := rand.New(rand.NewPCG(seed, 0x4ac5))
		var shuffled []int // by rank, where ranks are dealt at random
		if placement == "random" {
			shuffled = rng.Perm(int(size))
		}
		for _, rack := range rng.Perm(all)[:racks] {
			for place := range rackSize {
				rank := protocol.Rank(rack*rackSize + place)
				switch placement {
				case "random":
					rank = protocol.Rank(shuffled[rank])
				case "by-rack":
					rank = protocol.Rank(place*all + rack)
				}
				if rank != 0 {
					dead = append(dead, rank)
				}
			}
		}
		return dead
	}
}

func measureRacks(j *job) (Data, error) {
	size := protocol.Rank(j.pick(4096, 65536, 65536))
	var cells []cell
	for _, p := range rackPlacements {
		for _, racks := range deadRacks {
			s := experiments.Scenario{
				Size: size, L: 2, O: 1, Dissemination: "tree", Shape: topology.Binomial(), Correction: "checked",
				Start: broadcast.Synchronized,
				Runs:  j.pick(5, 200, 4000), Seed: j.seed, Draw: drawRack(p.name, size, racks),
			}
			if p.name == "independent" {
				s.Dead, s.Draw = racks*rackSize, nil
			}
			cells = append(cells, cell{labels: []any{p.name, racks}, scenario: s})
		}
	}
	t := newTable("placement", "racks", "dead", "gap", "gap_p99", "correction_time", "correction_time_p99",
		"messages_per_process", "unreached", "runs")
	return j.tabulate(cells, Data{"racks": t}, func(c cell, r *experiments.Report) {
		t.add(c.labels[0], c.labels[1], c.labels[1].(int)*rackSize, r.MaxGap.Mean, r.MaxGap.P99, r.CorrectionTime.Mean,
			r.CorrectionTime.P99,
			r.MessagesPerProcess.Mean, r.Unreached.Runs, r.Runs)
	})
}

func drawRacks(d Data) []chart.Chart {
	var charts []chart.Chart
	for _, y := range []struct{ column, title, label string }{
		{"correction_time", "Racks of 48 dead: correction time (P = 64K)", "mean correction time [steps]"},
		{"gap", "Racks of 48 dead: gaps (P = 64K)", "mean maximum gap"},
	} {
		c := chart.Chart{
			Name: "open-racks-" + y.column, Title: y.title,
			X: chart.Axis{Label: "dead racks", Log: true, Ticks: chart.At(1, 2, 4, 8, 16, 32, 54)},
			Y: chart.Axis{Label: y.label, Log: true, Ticks: chart.At(1, 2, 5, 10, 20, 50, 100, 200)},
		}
		for i, p := range rackPlacements {
			t := d["racks"].where("placement", p.name)
			series := chart.Series{Name: p.title, Color: i, Points: t.points("racks", y.column, "", "")}
			if p.name == "independent" {
				series.Kind, series.Color = chart.Dashed, chart.Black
			}
			c.Series = append(c.Series, series)
		}
		charts = append(charts, c)
	}
	return charts
}

func judgeRacks(d Data) []Claim {
	t := d["racks"]
	var claims []Claim
	for _, racks := range []int{1, 54} {
		independent := t.where("placement", "independent").where("racks", racks)
		for _, p := range rackPlacements[:3] {
			row := t.where("placement", p.name).where("racks", racks)
			claims = append(claims, Claim{
				where:  "Corrected Trees §2.1",
				Claim:  fmt.Sprintf("%d racks of %d dead, ranks dealt %s: correction time, maximum gap", racks, rackSize, p.title),
				Stated: "out of scope",
				Measured: fmt.Sprintf("%.1f steps (99%%: %.0f), %.1f; independent dead: %.1f steps (99%%: %.0f), %.1f",
					row.number("correction_time"), row.number("correction_time_p99"), row.number("gap"),
					independent.number("correction_time"), independent.number("correction_time_p99"), independent.number("gap")),
				Verdict: Answered, Runs: row.runs(),
			})
		}
	}
	random, independent := t.where("placement", "random"), t.where("placement", "independent")
	worst := 0.0
	for _, racks := range deadRacks {
		worst = max(worst, random.where("racks", racks).number("correction_time")/independent.where("racks",
			racks).number("correction_time")-1)
	}
	return append(claims, Claim{
		where:    "Corrected Trees §2.1",
		Claim:    "random numbering makes dead racks as good as independent dead: correction time at most longer by",
		Stated:   "independence can be achieved",
		Measured: percent(worst, 1), Verdict: verdict(worst < 0.05), Runs: random.runs(),
	})
}
