package reproduce

import (
	"fmt"
	"math"
	"strings"

	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Corrected Trees' Figure 10 and Table 1: gaps and how long they take to close.

func figure10(runs *Source) Experiment {
	return Experiment{
		Name: "ct-figure-10", Paper: trees,
		Title:  "Simulations agree with analysis on the relation between maximum gap and correction time",
		About:  faultsAbout + "Every pair of gap and time that occurred is a point.",
		Source: runs, charts: drawFigure10, claims: judgeFigure10,
	}
}

func table1(runs *Source) Experiment {
	return Experiment{
		Name: "ct-table-1", Paper: trees,
		Title: "Cost of correction under faults aggregated for all tree types",
		About: faultsAbout +
			"Percentiles are over the runs of all four trees together. A maximum grows with the number of runs: " +
			"it is set beside the printed one and counts only if it is larger than that, or if there were as many runs.",
		Source: runs, charts: drawTable1, claims: judgeTable1,
	}
}

func drawFigure10(d Data) []chart.Chart {
	t := d["gaps"]
	c := chart.Chart{
		Name: "ct-figure-10", Title: "Maximum gap and correction time (P = 64K)",
		X: chart.Axis{Label: "maximum gap g"}, Y: chart.Axis{Label: "correction time [steps]"},
	}
	var low, high []chart.Point
	for gap := range int(t.percentile("gap", 100)) + 1 {
		l, h := logp.CheckedBounds(protocol.Rank(gap), 2, 1)
		low = append(low, chart.Point{X: float64(gap), Y: float64(l)})
		high = append(high, chart.Point{X: float64(gap), Y: float64(h)})
	}
	for i, b := range broadcastNames[:4] {
		c.Series = append(c.Series, chart.Series{
			Name: b.title, Kind: chart.Dots, Color: i,
			Points: t.where("broadcast", b.name).points("gap", "time", "", ""),
		})
	}
	c.Series = append(c.Series, plainLine("upper bound 9 + 2g", high, chart.Black),
		plainLine("lower bound 8 + g", low, chart.Gray))
	return []chart.Chart{c}
}

func judgeFigure10(d Data) []Claim {
	summary, gaps := d["summary"], d["gaps"]
	over, atFour, binomial := 0.0, 0.0, 0.0
	gap, runs, rate := gaps.numbers("gap"), gaps.numbers("runs"), gaps.numbers("dead_percent")
	names := column(gaps, "broadcast")
	var large, largeBinomial float64
	for i, g := range gap {
		if g > 10 {
			over += runs[i]
			if rate[i] == highRate {
				atFour += runs[i]
			}
			if names[i] == "binomial" {
				binomial += runs[i]
			}
		}
		if g > 20 {
			large += runs[i]
			if names[i] == "binomial" {
				largeBinomial += runs[i]
			}
		}
	}
	all := gaps.sum("runs")
	return []Claim{
		{
			where: "Lemma 3, §4.3", Claim: "runs outside 8 + g ≤ correction time ≤ 9 + 2g", Stated: "0",
			Measured: figure(summary.sum("outside_lemma_3"), 0), Verdict: verdict(summary.sum("outside_lemma_3") == 0),
			Runs: int(all),
		},
		{
			where: "§4.3", Claim: "runs with a maximum gap greater than 10", Stated: "less than 1%",
			Measured: percent(over/all, 2), Verdict: verdict(over/all < 0.01), Runs: int(all),
		},
		{
			where: "§4.3", Claim: "of these, runs with 4% dead", Stated: "the vast majority",
			Measured: percent(atFour/over, 0), Verdict: verdict(atFour/over > 0.75), Runs: int(over),
		},
		{
			where: "§4.3", Claim: "large gaps happened mostly for binomial trees", Stated: "most",
			Measured: fmt.Sprintf("%s of gaps > 10, %s of gaps > 20", percent(binomial/over, 0),
				percent(largeBinomial/large, 0)),
			Verdict: verdict(largeBinomial/large > 0.5), Runs: int(over),
		},
	}
}

// table1Printed is Table 1: 99%, 99.9% and maximum of gap and time.
var table1Printed = map[float64][2][3]float64{
	0.01: {{1, 2, 3}, {10, 12, 14}},
	0.1:  {{2, 3, 6}, {12, 13, 16}},
	1:    {{5, 7, 19}, {16, 19, 32}},
	2:    {{8, 11, 35}, {19, 24, 56}},
	4:    {{13, 20, 55}, {26, 34, 86}},
}

// table1RunsPrinted is how many runs of a rate the paper did: 10^5 of four trees.
const table1RunsPrinted = 400_000

func drawTable1(d Data) []chart.Chart {
	c := chart.Chart{
		Name: "ct-table-1", Title: "Correction time under faults, here and printed",
		X: chart.Axis{Label: "dead processes [%]", Log: true, Ticks: chart.At(0.01, 0.1, 1, 2, 4)},
		Y: chart.Axis{Label: "correction time [steps]", Log: true, Ticks: chart.At(10, 20, 30, 40, 60, 80)},
	}
	for i, p := range []struct {
		name string
		at   float64
	}{{"maximum", 100}, {"99.9%", 99.9}, {"99%", 99}} {
		var here, printed []chart.Point
		for _, rate := range experiments.Table1Rates() {
			here = append(here, chart.Point{X: 100 * rate, Y: d["gaps"].where("dead_percent", 100*rate).percentile("time",
				p.at)})
			printed = append(printed, chart.Point{X: 100 * rate, Y: table1Printed[100*rate][1][2-i]})
		}
		c.Series = append(c.Series,
			chart.Series{Name: p.name + ", here", Color: i, Points: here},
			chart.Series{Name: p.name + ", printed", Kind: chart.Dashed, Color: i, Points: printed})
	}
	return []chart.Chart{c}
}

func judgeTable1(d Data) []Claim {
	var claims []Claim
	for _, rate := range experiments.Table1Rates() {
		rate *= 100
		t := d["gaps"].where("dead_percent", rate)
		for i, column := range []string{"gap", "time"} {
			stated := table1Printed[rate][i]
			measured := [3]float64{t.percentile(column, 99), t.percentile(column, 99.9), t.percentile(column, 100)}
			claims = append(claims, Claim{
				where: "Table 1", Claim: fmt.Sprintf("%s at %g%% dead: 99%%, 99.9%%, maximum",
					map[string]string{"gap": "maximum gap", "time": "correction time"}[column], rate),
				Stated: three(stated), Measured: three(measured), Runs: t.runs(),
				Verdict: verdict(near(measured[0], stated[0], 1) && near(measured[1], stated[1], math.Max(1, 0.1*stated[1]))),
				Note:    maximumNote(measured[2], stated[2], t.runs()),
			})
		}
	}
	return claims
}

func maximumNote(measured, stated float64, runs int) string {
	switch {
	case runs < table1RunsPrinted:
		return fmt.Sprintf("the maximum is over %s runs, the printed one over %s", figure(float64(runs), 0),
			figure(table1RunsPrinted, 0))
	case measured != stated:
		return "the maximum is that of one run of 400,000"
	}
	return ""
}

func three(v [3]float64) string {
	texts := make([]string, 3)
	for i := range v {
		texts[i] = figure(v[i], 0)
	}
	return strings.Join(texts, ", ")
}
