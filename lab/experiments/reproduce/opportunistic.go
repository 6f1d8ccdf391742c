package reproduce

import (
	"fmt"
	"math"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Corrected Trees' paragraph "Opportunistic Correction" in §4.3: how often
// a process is missed.

func opportunistic() Experiment {
	return Experiment{
		Name: "ct-opportunistic", Paper: trees,
		Title: "How often optimized opportunistic correction misses a live process",
		About: "P = 65,536, L = 2, o = 1, four trees. Three forms of optimized opportunistic correction: overlapped with 4 per direction, as the text says; " +
			"overlapped with 2 per direction, which is what the paper's figures fit; and the safe rule (docs/research/findings.md) with 4 per direction, overlapped. " +
			"Only runs with 1, 2 and 4% dead tell much; rates are scaled to the paper's 4·10^5 runs each.",
		Source: &Source{
			Name: "ct-opportunistic", Seed: 1, Tables: []string{"misses"},
			Cost: [sizes]float64{0.5, 17, 220}, measure: measureOpportunistic,
		},
		charts: drawOpportunistic, claims: judgeOpportunistic,
	}
}

// opportunisticRules are the forms that are compared.
var opportunisticRules = []struct{ name, title string }{
	{"optimized:4", "optimized, 4 per direction"},
	{"optimized:2", "optimized, 2 per direction"},
	{"safe:4", "safe, 4 per direction"},
}

func measureOpportunistic(j *job) (Data, error) {
	size := protocol.Rank(j.pick(1024, 65536, 65536))
	var cells []cell
	for _, rule := range opportunisticRules {
		for _, rate := range experiments.Table1Rates() {
			runs := j.pick(3, 8, 100)
			if rate < 0.01 {
				runs = j.pick(1, 2, 25)
			}
			if rule.name == "optimized:2" && rate > 0.03 {
				runs *= j.pick(1, 5, 10) // the rare event the paper counts
			}
			for i, shape := range experiments.Table1Shapes(2, 1) {
				cells = append(cells, cell{[]any{rule.name, 100 * rate, shape.String()}, experiments.Scenario{
					Size: size, L: 2, O: 1, Dissemination: "tree", Shape: shape, Correction: rule.name, Start: broadcast.Overlapped,
					Dead: int(rate * float64(size)), Runs: runs, Seed: j.seed + uint64(i),
				}, float64(runs)})
			}
		}
	}
	t := newTable("rule", "dead_percent", "broadcast", "incomplete", "missing_one", "missed", "quiescence",
		"messages_per_process", "runs")
	return j.tabulate(cells, Data{"misses": t}, func(c cell, r *experiments.Report) {
		t.add(c.labels[0], c.labels[1], c.labels[2], r.Unreached.Runs, missingOne(r.Results), r.Unreached.Processes,
			r.Quiescence.Mean, r.MessagesPerProcess.Mean, r.Runs)
	})
}

// missingOne counts runs that left exactly one process without the message.
func missingOne(results []logp.Result) (runs int) {
	for i := range results {
		if results[i].Unreached == 1 {
			runs++
		}
	}
	return runs
}

func drawOpportunistic(d Data) []chart.Chart {
	c := chart.Chart{
		Name: "ct-opportunistic", Title: "Incomplete runs of opportunistic correction (P = 64K)",
		X: chart.Axis{Label: "dead processes [%]", Ticks: chart.At(0, 1, 2, 3, 4)},
		Y: chart.Axis{Label: "incomplete runs [%]"},
	}
	for i, rule := range opportunisticRules {
		var points []chart.Point
		for _, rate := range experiments.Table1Rates() {
			t := d["misses"].where("rule", rule.name).where("dead_percent", 100*rate)
			points = append(points, chart.Point{X: 100 * rate, Y: 100 * t.sum("incomplete") / t.sum("runs")})
		}
		c.Series = append(c.Series, chart.Series{Name: rule.title, Color: i, Points: points})
	}
	return []chart.Chart{c}
}

// opportunisticEnough is how many incomplete runs say something about shares.
const opportunisticEnough = 5

func judgeOpportunistic(d Data) []Claim {
	t := d["misses"]
	two, four, safe := t.where("rule", "optimized:2"), t.where("rule", "optimized:4"), t.where("rule", "safe:4")
	low := two.where("dead_percent", 0.01).sum("incomplete") + two.where("dead_percent", 0.1).sum("incomplete")
	total, atFour := scaled(two)
	incomplete := two.sum("incomplete")
	rare := func(agrees bool) Verdict {
		if incomplete < opportunisticEnough {
			return NotShown
		}
		return verdict(agrees)
	}
	fourTotal, _ := scaled(four)
	return []Claim{
		{
			where: "§4.3", Claim: "incomplete runs with fewer than 1% dead", Stated: "none",
			Measured: figure(low, 0), Verdict: verdict(low == 0), Runs: two.where("dead_percent", 0.01).runs() +
				two.where("dead_percent", 0.1).runs(),
		},
		{
			where: "§4.3", Claim: "incomplete runs of 2·10^6, optimized rule with 2 per direction", Stated: "around 2,600",
			Measured: fmt.Sprintf("about %s, from %.0f incomplete runs", figure(total, 0), incomplete),
			Verdict:  rare(math.Abs(total-2600) < 2600*(0.25+2/math.Sqrt(math.Max(incomplete, 1)))), Runs: two.runs(),
			Note: "the text says 4 per direction; 2 per direction, 4 in all as the authors' simulator counts, is what fits",
		},
		{
			where: "§4.3", Claim: "share of incomplete runs that had 4% dead", Stated: "more than 90%",
			Measured: percent(atFour/math.Max(total, 1), 0), Verdict: rare(atFour/math.Max(total, 1) > 0.85), Runs: two.runs(),
			Note: "of so few incomplete runs, one more at 2% is some percent",
		},
		{
			where: "§4.3", Claim: "share of incomplete runs that miss a single process", Stated: "more than 90% (at 4% dead)",
			Measured: percent(two.sum("missing_one")/math.Max(incomplete, 1), 0),
			Verdict:  rare(two.sum("missing_one") > 0.85*incomplete), Runs: two.runs(),
			Note: fmt.Sprintf("of %.0f incomplete runs; the paper's share is of those with 4%% dead", incomplete),
		},
		{
			where: "§4.3", Claim: "incomplete runs of 2·10^6, optimized rule with 4 per direction as the text says",
			Stated:   "around 2,600",
			Measured: fmt.Sprintf("about %s, from %.0f incomplete runs", figure(fourTotal, 0), four.sum("incomplete")),
			Verdict:  verdict(within(fourTotal, 2600, 0.5)), Runs: four.runs(),
			Note: "the optimized rule is not safe beyond 2 per direction: two processes can each leave a third to the other (docs/research/findings.md)",
		},
		{
			where: "§3.3", Claim: "the optimization preserves non-faulty liveness: runs incomplete with 4 per direction that are complete by the safe rule", Stated: "0",
			Measured: fmt.Sprintf("%.0f incomplete optimized, %.0f safe", four.sum("incomplete"), safe.sum("incomplete")),
			Verdict:  verdict(four.sum("incomplete") <= safe.sum("incomplete")), Runs: four.runs() + safe.runs(),
			Note: "the smallest counterexample has nine processes (docs/research/findings.md)",
		},
	}
}

// scaled is how many of the paper's 2·10^6 runs would be incomplete, and how
// many of them with 4% dead.
func scaled(t *Table) (all, atFour float64) {
	for _, rate := range experiments.Table1Rates() {
		r := t.where("dead_percent", 100*rate)
		share := r.sum("incomplete") / math.Max(r.sum("runs"), 1)
		all += share * table1RunsPrinted
		if 100*rate == highRate {
			atFour = share * table1RunsPrinted
		}
	}
	return all, atFour
}
