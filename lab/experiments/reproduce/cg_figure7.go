package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
)

// Corrected Gossip's Figure 7, the table: six algorithms on 4,096 nodes.

func gossipFigure7() Experiment {
	return Experiment{
		Name: "cg-figure-7", Paper: gossip,
		Title: "Latency and work of reliable broadcast algorithms, N = 4,096",
		About: "L = 2, O = 1, with 0 and 3 failures and the printed T. Receives do not wait for each other, and latency is when the last process is through " +
			"with its algorithm: with these two conventions of that paper's the printed latencies come out (docs/adr/0004). Latencies count as the same " +
			"within one step, work within two percent.",
		Source: &Source{
			Name: "cg-figure-7", Seed: 1, Tables: []string{"rows"},
			Cost: [sizes]float64{1, 2, 90}, measure: measureGossipFigure7,
		},
		charts: drawGossipFigure7, claims: judgeGossipFigure7,
	}
}

func measureGossipFigure7(j *job) (Data, error) {
	t := newTable("algorithm", "failures", "T", "stated_latency", "latency", "stated_work", "work", "correction",
		"unreached_share", "runs")
	rows, err := experiments.Figure7(j.ctx, j.pick(2, 30, 1500), j.seed)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		t.add(r.Algorithm, r.Dead, r.Time, r.StatedLatency, r.Latency, r.StatedWork, r.Work, r.Correction,
			r.Unreached, r.Runs)
	}
	return Data{"rows": t}, nil
}

func drawGossipFigure7(d Data) []chart.Chart {
	t := d["rows"].where("failures", 0)
	pair := func(name, title, label, here, printed string) chart.Chart {
		c := chart.Chart{Name: name, Title: title, Y: chart.Axis{Label: label}, Categories: column(t, "algorithm")}
		for i, s := range []struct{ name, column string }{{"here", here}, {"printed", printed}} {
			series := chart.Series{Name: s.name, Kind: chart.Bars, Color: i}
			for n, v := range t.numbers(s.column) {
				series.Points = append(series.Points, chart.Point{X: float64(n), Y: v})
			}
			c.Series = append(c.Series, series)
		}
		return c
	}
	return []chart.Chart{
		pair("cg-figure-7-latency", "Latency, N = 4,096, no failures", "latency [steps]", "latency", "stated_latency"),
		pair("cg-figure-7-work", "Work, N = 4,096, no failures", "messages", "work", "stated_work"),
	}
}

// figure7Notes say why a row differs; docs/adr/0004 has the reasons at length.
var figure7Notes = map[string]string{
	"CCG work":      "the printed work is less than gossip until the printed T sends alone, and less than the sends of the printed latency",
	"CCG latency 3": "T = 36, as without failures, gives the printed 46: the printed 34 is taken for a misprint",
	"FCG work":      "the printed work is that of CCG plus exactly 4,096, and less than gossip until the printed T sends alone",
	"BFB work":      "modeled, not simulated, in the paper: it leaves out the acknowledgments that its latency includes",
	"BFB latency 3": "modeled in the paper as one and a half times the failure-free one; here one process dies at a random moment, and a leaf that dies late costs little",
}

func judgeGossipFigure7(d Data) []Claim {
	t := d["rows"]
	var claims []Claim
	for _, row := range t.Rows {
		r := &Table{Columns: t.Columns, Rows: [][]string{row}}
		name, failures := row[t.index("algorithm")], row[t.index("failures")]
		about := fmt.Sprintf("of %s on 4,096 nodes, %s failures", name, failures)
		latency, work := r.number("latency"), r.number("work")
		sameLatency, sameWork := near(latency, r.number("stated_latency"), 1), within(work, r.number("stated_work"), 0.02)
		latencyClaim := Claim{
			where: "Figure 7, table", Claim: "latency " + about, Stated: figure(r.number("stated_latency"), 0),
			Measured: figure(latency, 2), Verdict: verdict(sameLatency), Runs: r.runs(),
		}
		workClaim := Claim{
			where: "Figure 7, table", Claim: "work " + about, Stated: figure(r.number("stated_work"), 0),
			Measured: figure(work, 0), Verdict: verdict(sameWork), Runs: r.runs(),
		}
		if !sameLatency {
			latencyClaim.Note = figure7Notes[name+" latency "+failures]
		}
		if !sameWork {
			workClaim.Note = figure7Notes[name+" work"]
		}
		claims = append(claims, latencyClaim, workClaim)
	}
	return append(claims, compareGossipFigure7(t)...)
}

// compareGossipFigure7 judges what the text makes of the table.
func compareGossipFigure7(t *Table) []Claim {
	of := func(name, column string) float64 {
		return t.where("algorithm", name).where("failures", 0).number(column)
	}
	less := func(a, b, column string) float64 { return 1 - of(a, column)/of(b, column) }
	runs := t.where("failures", 0).runs()
	consistent := 1 - max(t.where("algorithm", "OCG").number("unreached_share"),
		t.where("algorithm", "OCG").where("failures", 3).number("unreached_share"))
	times := t.where("algorithm", "BFB").where("failures", 0).number("latency") / of("FCG", "latency")
	timesFailing := t.where("algorithm", "BFB").where("failures", 3).number("latency") / t.where("algorithm",
		"FCG").where("failures", 3).number("latency")
	const rests = "rests on the printed work of FCG, which cannot be (docs/adr/0004): FCG sends more messages than BIG"
	return []Claim{
		{
			where: "§IV-D", Claim: "OCG's work compared with GOS", Stated: "60% less",
			Measured: percent(less("OCG", "GOS", "work"), 0) + " less",
			Verdict:  verdict(near(less("OCG", "GOS", "work"), 0.6, 0.02)), Runs: runs,
		},
		{
			where: "§IV-D", Claim: "OCG's latency compared with GOS", Stated: "20% lower",
			Measured: percent(less("OCG", "GOS", "latency"), 0) + " lower",
			Verdict:  verdict(near(less("OCG", "GOS", "latency"), 0.2, 0.02)), Runs: runs,
		},
		{
			where: "§IV-D", Claim: "OCG's consistency, share of nodes reached", Stated: "99.999%",
			Measured: percent(consistent, 4), Verdict: verdict(consistent >= 0.99998), Runs: runs,
		},
		{
			where: "§IV-D", Claim: "FCG's latency compared with BIG", Stated: "15% lower",
			Measured: percent(less("FCG", "BIG", "latency"), 0) + " lower",
			Verdict:  verdict(less("FCG", "BIG", "latency") >= 0.14), Runs: runs,
			Note: "20% without failures, 15% with three, as printed in the table",
		},
		{
			where: "§IV-D", Claim: "FCG's work compared with BIG", Stated: "over 50% less",
			Measured: percent(-less("FCG", "BIG", "work"), 0) + " more", Verdict: verdict(less("FCG", "BIG", "work") >= 0.5),
			Runs: runs, Note: rests,
		},
		{
			where: "abstract", Claim: "improvement of latency over the fastest known algorithm on 4,096 nodes", Stated: "20%",
			Measured: percent(less("FCG", "BIG", "latency"), 0),
			Verdict:  verdict(near(less("FCG", "BIG", "latency"), 0.2, 0.02)), Runs: runs,
		},
		{
			where: "abstract", Claim: "improvement of network load over the fastest known algorithm on 4,096 nodes",
			Stated:   "53%",
			Measured: "none: " + percent(-less("FCG", "BIG", "work"), 0) + " more",
			Verdict:  verdict(near(less("FCG", "BIG", "work"), 0.53, 0.02)), Runs: runs, Note: rests,
		},
		{
			where: "§IV-D", Claim: "FCG's latency compared with BFB", Stated: "nearly 3 times less (three failures)",
			Measured: fmt.Sprintf("%.1f times less with three failures, %.1f without", timesFailing, times),
			Verdict:  verdict(timesFailing > 2.5), Runs: runs,
			Note: "BFB with failures is modeled in the paper and simulated here: a random death costs less than a whole restart on average",
		},
	}
}
