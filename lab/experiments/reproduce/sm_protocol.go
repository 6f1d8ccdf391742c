package reproduce

import (
	"fmt"
	"math"

	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/protocol"
)

// Stabilization time of the protocol that Pleach has, beside the membership
// thesis' models of its own: the machines that processes run, under the LogP
// clock.

func smProtocol() Experiment {
	return Experiment{
		Name: "sm-protocol", Paper: membership,
		Title: "Stabilization time of Pleach's own view change, beside the thesis' models",
		About: "L = 2, o = 1: the machines of package membership in the simulator, with a perfect detector. One member dead, told by two neighbors on the ring; 1% dead, told in the " +
			"same way; 1% that an outside feed tells the coordinator. The thesis' protocol goes down a tree and back up; Pleach's takes a report and five ways, as views are " +
			"agreed by a majority although coordinators may die (docs/research/findings.md).",
		Source: &Source{
			Name: "sm-protocol", Seed: 1, Tables: []string{"times"},
			Cost: [sizes]float64{0.2, 6, 60}, measure: measureProtocol,
		},
		charts: drawProtocol, claims: judgeProtocol,
	}
}

// protocolCases name the rows of a size, in the order of
// [experiments.StabilizationCases].
var protocolCases = []string{"one dead", "1% dead, told by neighbors", "1% dead, told by a feed"}

func measureProtocol(j *job) (Data, error) {
	const from = 6
	to := j.pick(7, 12, 14)
	t := newTable("case", "members", "dead", "time", "model", "thesis_base", "thesis_contention",
		"messages_per_member", "runs")
	for log := from; log <= to; log++ {
		size := protocol.Rank(1) << log
		runs := j.pick(1, 2, 5)
		if log > 11 {
			runs = 1
		}
		rows, err := experiments.Stabilizations(j.ctx, size, runs, j.seed)
		if err != nil {
			return nil, err
		}
		for i, r := range rows {
			t.add(protocolCases[i], r.Size, r.Dead, r.Time.Mean, r.Model, r.Base, r.Contention, r.Messages.Mean/float64(size),
				r.Runs)
		}
		j.done(math.Exp2(float64(log - to)))
	}
	return Data{"times": t}, nil
}

func drawProtocol(d Data) []chart.Chart {
	t := d["times"]
	one := t.where("case", protocolCases[0])
	sizes := one.numbers("members")
	c := chart.Chart{
		Name: "sm-protocol", Title: "Stabilization time (L = 2, o = 1)",
		X: chart.Axis{Label: "members", Log: true, Ticks: chart.Powers(6, int(math.Log2(sizes[len(sizes)-1])), 1)},
		Y: chart.Axis{Label: "stabilization time [steps]"},
	}
	for i, name := range protocolCases {
		c.Series = append(c.Series,
			chart.Series{Name: name, Color: i, Points: t.where("case", name).points("members", "time", "", "")})
	}
	c.Series = append(c.Series,
		plainLine("thesis' protocol, contention model", one.points("members", "thesis_contention", "", ""), chart.Black),
		plainLine("thesis' protocol, base model", one.points("members", "thesis_base", "", ""), chart.Gray))
	return []chart.Chart{c}
}

func judgeProtocol(d Data) []Claim {
	one := d["times"].where("case", protocolCases[0])
	feed := d["times"].where("case", protocolCases[2])
	times, base := one.numbers("time"), one.numbers("thesis_base")
	last := len(times) - 1
	// If it grows logarithmically, each doubling adds as much.
	low, high := math.Inf(1), 0.0
	for i := range last {
		low, high = min(low, times[i+1]-times[i]), max(high, times[i+1]-times[i])
	}
	apart := 0.0
	for i, model := range one.numbers("model") {
		apart = max(apart, math.Abs(model-times[i]))
	}
	return []Claim{
		{
			where: "§6.1.1", Claim: "stabilization time scales logarithmically: steps that a doubling of the members adds, one dead", Stated: "as many each time",
			Measured: fmt.Sprintf("%.0f to %.0f, up to %s members", low, high, figure(one.numbers("members")[last], 0)),
			Verdict:  verdict(high-low <= 3), Runs: one.runs(),
		},
		{
			where:    "Eqs. 4.1 and 4.2",
			Claim:    "stabilization time of Pleach's protocol compared with the base model of the thesis' own",
			Stated:   "one way down and one up",
			Measured: fmt.Sprintf("%.1f times: a report and five ways", times[last]/base[last]), Verdict: Answered,
			Runs: one.runs(),
		},
		{
			where: "§4", Claim: "2o + L + five times the tree's finish time is what a change takes: largest difference",
			Stated:   "a model predicts Ts",
			Measured: steps(apart), Verdict: verdict(apart <= 4), Runs: one.runs(),
		},
		{
			where: "§6.1", Claim: "stabilization time with 1% dead that a feed tells of, compared with one dead",
			Stated:   "not evaluated",
			Measured: fmt.Sprintf("%.2f times", feed.numbers("time")[last]/times[last]), Verdict: Answered, Runs: feed.runs(),
		},
	}
}
