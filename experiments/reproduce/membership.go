package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/experiments"
	"github.com/pleach-go/pleach/experiments/chart"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// The membership thesis' Figures 6.1 to 6.11: stabilization time by the number of
// nodes, as its base model has it and as a message down the tree and
// acknowledgments up take it in the LogP model.

// testBed is one of the thesis' machines.
type testBed struct {
	name, title string
	figures     string
	// latency and overhead are L and Ocp, in tenths of a microsecond.
	latency, overhead protocol.Time
	nodes             []int
	log               bool
}

func testBeds() []testBed {
	return []testBed{
		{"sm-figure-6.1", "BlueGene/L over MPI", "Figures 6.1 and 6.2", 46, 20, []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}, true},
		{"sm-figure-6.3", "OS cluster over TCP", "Figures 6.3 and 6.4", 940, 23, upTo(25), false},
		{"sm-figure-6.6", "OS cluster over Myrinet", "Figures 6.6 and 6.7", 136, 23, upTo(25), false},
		{"sm-figure-6.9", "XTORC over TCP", "Figures 6.9 and 6.11", 1180, 20, upTo(47), false},
	}
}

func upTo(n int) []int {
	nodes := make([]int, 0, n-1)
	for i := 2; i <= n; i++ {
		nodes = append(nodes, i)
	}
	return nodes
}

func (b testBed) experiment() Experiment {
	return Experiment{
		Name: b.name, Paper: membership,
		Title: "Stabilization time on " + b.title + ", binary and 4-ary trees",
		About: fmt.Sprintf("The base model (Eqs. 4.1 and 4.2: 2·L·(H−1) + Ocp·H, L = %g µs, Ocp = %g µs) and a LogP simulation of the protocol's messages: down a tree of a children and "+
			"acknowledged up again, with latency L and Ocp for each message sent and received. The machines themselves are not to be had; what a group of "+
			"real processes takes on this one is measured by \"pleach bench stabilization\".", float64(b.latency)/10, float64(b.overhead)/10),
		Source: &Source{
			Name: b.name, Seed: 1, Tables: []string{"times"},
			Cost: [sizes]float64{0.1, 0.1, 0.1}, measure: b.measure,
		},
		charts: b.draw, claims: b.judge,
	}
}

func (b testBed) measure(j *job) (Data, error) {
	t := newTable("children", "nodes", "height", "model_us", "simulated_us", "runs")
	var cells []cell
	for _, a := range []int{2, 4} {
		for _, n := range b.nodes {
			cells = append(cells, cell{labels: []any{a, n}, scenario: experiments.Scenario{
				Size: protocol.Rank(n), L: b.latency, O: b.overhead, Dissemination: "ack", Shape: topology.KAry(a),
				Correction: "none", Runs: 1, Seed: j.seed,
			}})
		}
	}
	err := j.run(cells, func(c cell, r *experiments.Report) {
		a, n := c.labels[0].(int), c.labels[1].(int)
		h := height(a, n)
		t.add(a, n, h, b.model(h), r.Quiescence.Mean/10, 1)
	})
	return Data{"times": t}, err
}

// height counts the levels of a tree of n nodes with up to a children each.
func height(a, n int) (levels int) {
	for full, width := 0, 1; full < n; width *= a {
		full += width
		levels++
	}
	return levels
}

// model is Ts by Eqs. 4.1 and 4.2, in microseconds.
func (b testBed) model(height int) float64 {
	h := protocol.Time(height)
	return float64(2*b.latency*(h-1)+b.overhead*h) / 10
}

func (b testBed) draw(d Data) []chart.Chart {
	c := chart.Chart{
		Name: b.name, Title: "Stabilization time, " + b.title,
		X: chart.Axis{Label: "nodes", Log: b.log}, Y: chart.Axis{Label: "stabilization time [µs]"},
	}
	if b.log {
		c.X.Ticks = chart.Powers(1, 10, 1)
	}
	for i, a := range []int{2, 4} {
		t := d["times"].where("children", a)
		c.Series = append(c.Series,
			plainLine(fmt.Sprintf("a = %d, LogP", a), t.points("nodes", "simulated_us", "", ""), i),
			plainLine(fmt.Sprintf("a = %d, base model", a), t.points("nodes", "model_us", "", ""), 5-i))
	}
	return []chart.Chart{c}
}

func (b testBed) judge(d Data) []Claim {
	t := d["times"]
	last := b.nodes[len(b.nodes)-1]
	at := func(a, n int, column string) float64 {
		return t.where("children", a).where("nodes", n).number(column)
	}
	two, four := at(2, last, "simulated_us"), at(4, last, "simulated_us")
	middle := b.nodes[len(b.nodes)/2]
	claims := []Claim{{
		where: "§6.1, " + b.figures, Claim: fmt.Sprintf("stabilization time grows logarithmically with the number of nodes (%s, a = 2)", b.title), Stated: "logarithmically",
		Measured: fmt.Sprintf("%.0f µs with %d nodes, %.0f µs with %d", at(2, middle, "simulated_us"), middle, two, last),
		Verdict:  verdict(two/at(2, middle, "simulated_us") < 2.2), Runs: t.runs(),
	}}
	switch b.name {
	case "sm-figure-6.1":
		claims = append(claims, Claim{
			where: "§6.1.1", Claim: "time with 1,024 nodes is in the order of microseconds", Stated: "below a millisecond",
			Measured: fmt.Sprintf("%.0f µs with a = 2 (base model %.0f µs)", two, at(2, last, "model_us")), Verdict: verdict(two < 1000), Runs: t.runs(),
			Note: "the base model leaves out hops of the torus, as the thesis says",
		}, Claim{
			where: "§6.1.1, Figure 6.2", Claim: "a = 4 is faster than a = 2", Stated: "slightly smaller",
			Measured: fmt.Sprintf("%.0f µs against %.0f µs", four, two), Verdict: verdict(four < two), Runs: t.runs(),
			Note: "without the torus' hops, which grow with a, the gain is larger than measured in the thesis",
		})
	case "sm-figure-6.9":
		claims = append(claims, Claim{
			where: "§6.1.3, Figure 6.11", Claim: "with a = 4 the base model's time rises above", Stated: "5 and 21 nodes",
			Measured: b.steps(t), Verdict: verdict(b.steps(t) == "5 and 21 nodes"), Runs: t.runs(),
		})
	}
	return claims
}

// steps names the numbers of nodes after which the 4-ary tree gets higher, from
// the second level on.
func (b testBed) steps(t *Table) string {
	t = t.where("children", 4)
	heights, nodes := t.numbers("height"), t.numbers("nodes")
	var at []any
	for i := 1; i < len(heights); i++ {
		if heights[i] > heights[i-1] {
			at = append(at, nodes[i-1])
		}
	}
	if len(at) != 2 {
		return fmt.Sprint(at...)
	}
	return fmt.Sprintf("%v and %v nodes", at...)
}
