package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/chart"
)

// Corrected Trees' Figures 8 and 9: latency and messages by the rate of dead.

func figure8(runs *Source) Experiment {
	return Experiment{
		Name: "ct-figure-8", Paper: trees,
		Title: "Average quiescence latency grows with fault rate",
		About: faultsAbout +
			"Checked gossip has T = 38, the best without faults, and fewer runs, as each takes a hundred times as long.",
		Source: runs, charts: drawFigure8, claims: judgeFigure8,
	}
}

func figure9(runs *Source) Experiment {
	return Experiment{
		Name: "ct-figure-9", Paper: trees,
		Title:  "Average number of messages goes down with higher fault rate",
		About:  faultsAbout + "The same runs as in Figure 8.",
		Source: runs, charts: drawFigure9, claims: judgeFigure9,
	}
}

// lowRate and highRate are the ends of the range of rates, as in the tables.
const lowRate, highRate = 0.01, 4.0

func drawFigure8(d Data) []chart.Chart {
	return []chart.Chart{byRate(d["summary"], "ct-figure-8", "Quiescence latency and faults (P = 64K)",
		"quiescence latency [steps]", "quiescence", "quiescence_p5", "quiescence_p95")}
}

func drawFigure9(d Data) []chart.Chart {
	return []chart.Chart{byRate(d["summary"], "ct-figure-9", "Messages and faults (P = 64K)",
		"messages per process", "messages_per_process", "messages_p5", "messages_p95")}
}

// byRate draws a column over the rates. Curves stand a little apart, so that
// whiskers do not cover each other.
func byRate(t *Table, name, title, label, y, low, high string) chart.Chart {
	c := chart.Chart{
		Name: name, Title: title,
		X: chart.Axis{Label: "dead processes [%]", Log: true, Ticks: chart.At(0.01, 0.1, 1, 2, 4)},
		Y: chart.Axis{Label: label},
	}
	for i, b := range broadcastNames {
		points := t.where("broadcast", b.name).points("dead_percent", y, low, high)
		for p := range points {
			points[p].X *= 1 + 0.06*float64(i-2)
		}
		c.Series = append(c.Series, chart.Series{Name: b.title, Kind: chart.Whiskers, Color: i, Points: points})
	}
	return c
}

// growth is how a column changes from the lowest rate to the highest.
func growth(t *Table, name, column string) float64 {
	t = t.where("broadcast", name)
	return t.where("dead_percent", highRate).number(column)/t.where("dead_percent", lowRate).number(column) - 1
}

func judgeFigure8(d Data) []Claim {
	t := d["summary"]
	var grown []float64
	runs := 0
	for _, b := range broadcastNames[:4] {
		grown = append(grown, growth(t, b.name, "quiescence"))
		runs += t.where("broadcast", b.name).runs()
	}
	one := func(v float64) string { return percent(v, 1) }
	inRange := true
	for _, g := range grown {
		inRange = inRange && g > 0.115 && g < 0.145
	}
	gossipGrown := growth(t, "gossip", "quiescence")
	binomial, optimal := growth(t, "binomial", "quiescence_stddev")+1, growth(t, "optimal", "quiescence_stddev")+1
	return []Claim{
		{
			where: "§4.3", Claim: "average latency of corrected trees grows from 0.01% to 4% dead", Stated: "by 12–14%",
			Measured: "by " + span(one, grown...), Verdict: verdict(inRange), Runs: runs,
		},
		{
			where: "§4.3", Claim: "average latency of corrected gossip grows from 0.01% to 4% dead", Stated: "by 4%",
			Measured: "by " + one(gossipGrown), Verdict: verdict(near(gossipGrown, 0.04, 0.015)),
			Runs: t.where("broadcast", "gossip").runs(),
		},
		{
			where: "§4.3", Claim: "standard deviation of a binomial tree's latency at 4% dead, compared with 0.01%",
			Stated:   "17 times",
			Measured: fmt.Sprintf("%.1f times", binomial), Verdict: verdict(within(binomial, 17, 0.3)),
			Runs: t.where("broadcast", "binomial").runs(),
			Note: "the deviation at 0.01% hangs on the few runs in which a gap is longer than one",
		},
		{
			where: "§4.3", Claim: "standard deviation of an optimal tree's latency at 4% dead, compared with 0.01%",
			Stated:   "10 times",
			Measured: fmt.Sprintf("%.1f times", optimal), Verdict: verdict(within(optimal, 10, 0.3)),
			Runs: t.where("broadcast", "optimal").runs(),
			Note: "the deviation at 0.01% hangs on the few runs in which a gap is longer than one",
		},
		{
			where: "§4.2", Claim: "runs in which checked correction leaves a live process without the message", Stated: "none",
			Measured: figure(t.sum("unreached"), 0), Verdict: verdict(t.sum("unreached") == 0), Runs: t.runs(),
		},
	}
}

func judgeFigure9(d Data) []Claim {
	t := d["summary"]
	var changes, treeMessages []float64
	fall, fewer := true, true
	for _, b := range broadcastNames {
		change := growth(t, b.name, "messages_per_process")
		changes = append(changes, -change)
		fall = fall && change < 0
		if b.name != "gossip" {
			treeMessages = append(treeMessages, t.where("broadcast", b.name).numbers("messages_per_process")...)
		}
	}
	gossipMessages := t.where("broadcast", "gossip").numbers("messages_per_process")
	for _, m := range treeMessages {
		fewer = fewer && m < gossipMessages[len(gossipMessages)-1]
	}
	return []Claim{
		{
			where: "§4.3", Claim: "messages of all broadcasts from 0.01% to 4% dead", Stated: "drop",
			Measured: "by " + span(func(v float64) string { return percent(v, 1) }, changes...), Verdict: verdict(fall),
			Runs: t.runs(),
		},
		{
			where: "§4.3", Claim: "corrected trees send fewer messages than corrected gossip at every fault rate",
			Stated: "significantly fewer",
			Measured: fmt.Sprintf("%s against %s per process", span(func(v float64) string { return figure(v, 2) },
				treeMessages...),
				span(func(v float64) string { return figure(v, 2) }, gossipMessages...)), Verdict: verdict(fewer), Runs: t.runs(),
		},
	}
}
