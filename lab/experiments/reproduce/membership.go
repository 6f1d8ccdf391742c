package reproduce

import (
	"fmt"
	"math"

	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// The membership thesis' Figures 6.1 to 6.11: stabilization time by the number of
// nodes, as its base model and its contention model have it and as a message down
// the tree and acknowledgments up take it in the LogP model.

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
		{
			"sm-figure-6.1", "BlueGene/L over MPI", "Figures 6.1 and 6.2", 46, 20,
			[]int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024},
			true,
		},
		{"sm-figure-6.3", "OS cluster over TCP", "Figures 6.3 to 6.5", 940, 23, upTo(25), false},
		{"sm-figure-6.6", "OS cluster over Myrinet", "Figures 6.6 to 6.8", 136, 23, upTo(25), false},
		{"sm-figure-6.9", "XTORC over TCP", "Figures 6.9 to 6.11", 1180, 20, upTo(47), false},
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
		About: fmt.Sprintf("The base model (Eqs. 4.1 and 4.2: 2·L·(H−1) + Ocp·H, L = %g µs, Ocp = %g µs), the contention model (the same with the latency between a parent and all its "+
			"children at once, second picture) and a LogP simulation of the protocol's messages: down a tree of a children and acknowledged up again, with latency L and "+
			"Ocp for each message sent and received; latency under contention is simulated likewise. The machines themselves are not to be had; "+
			"real processes are in sm-processes.", float64(b.latency)/10, float64(b.overhead)/10),
		Source: &Source{
			Name: b.name, Seed: 1, Tables: []string{"times"},
			Cost: [sizes]float64{0.1, 0.1, 0.1}, measure: b.measure,
		},
		charts: b.draw, claims: b.judge,
	}
}

func (b testBed) measure(j *job) (Data, error) {
	t := newTable("children", "nodes", "height", "model_us", "contention_us", "simulated_us", "latency_us", "runs")
	var cells []cell
	latency := map[[2]int]float64{} // under contention, by children and nodes
	for _, a := range []int{2, 4} {
		for n := 2; n <= a+1; n++ {
			cells = append(cells, b.cell(j, a, n, true))
		}
		for _, n := range b.nodes {
			cells = append(cells, b.cell(j, a, n, false))
		}
	}
	err := j.run(cells, func(c cell, r *experiments.Report) {
		a, n := c.labels[0].(int), c.labels[1].(int)
		if contended := c.labels[2].(bool); contended { // there and back
			latency[[2]int{a, n}] = r.Quiescence.Mean / 2 / 10
			return
		}
		h := height(a, n)
		l := latency[[2]int{a, min(n, a+1)}]
		t.add(a, n, h, b.model(float64(b.latency)/10, h), b.model(l, h), r.Quiescence.Mean/10, l, 1)
	})
	return Data{"times": t}, err
}

// cell is a tree of n nodes; contended says that it is for its latency.
func (b testBed) cell(j *job, a, n int, contended bool) cell {
	return cell{labels: []any{a, n, contended}, scenario: experiments.Scenario{
		Size: protocol.Rank(n), L: b.latency, O: b.overhead, Dissemination: "ack", Shape: topology.KAry(a),
		Correction: "none", Runs: 1, Seed: j.seed,
	}}
}

// height counts the levels of a tree of n nodes with up to a children each.
func height(a, n int) (levels int) {
	for full, width := 0, 1; full < n; width *= a {
		full += width
		levels++
	}
	return levels
}

// model is Ts by Eqs. 4.1 and 4.2, in microseconds, as is the latency.
func (b testBed) model(latency float64, height int) float64 {
	h := float64(height)
	return 2*latency*(h-1) + float64(b.overhead)/10*h
}

func (b testBed) draw(d Data) []chart.Chart {
	x := chart.Axis{Label: "nodes", Log: b.log}
	if b.log {
		x.Ticks = chart.Powers(1, 10, 1)
	}
	times := chart.Chart{
		Name: b.name, Title: "Stabilization time, " + b.title, X: x,
		Y: chart.Axis{Label: "stabilization time [µs]"},
	}
	latency := chart.Chart{
		Name: b.name + "-latency", Title: "Latency under contention, " + b.title, X: x,
		Y: chart.Axis{Label: "latency [µs]"},
	}
	for i, a := range []int{2, 4} {
		t := d["times"].where("children", a)
		times.Series = append(times.Series,
			chart.Series{Name: fmt.Sprintf("a = %d, LogP", a), Color: i, Points: t.points("nodes", "simulated_us", "", "")},
			chart.Series{
				Name: fmt.Sprintf("a = %d, contention model", a), Kind: chart.Dashed, Color: i,
				Points: t.points("nodes", "contention_us", "", ""),
			},
			plainLine(fmt.Sprintf("a = %d, base model", a), t.points("nodes", "model_us", "", ""), 5-i))
		latency.Series = append(latency.Series,
			chart.Series{
				Name: fmt.Sprintf("a parent and %d children", a), Color: i,
				Points: t.points("nodes", "latency_us", "", ""),
			})
	}
	return []chart.Chart{times, latency}
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
		where:    "§6.1, " + b.figures,
		Claim:    fmt.Sprintf("stabilization time grows logarithmically with the number of nodes (%s, a = 2)", b.title),
		Stated:   "logarithmically",
		Measured: fmt.Sprintf("%.0f µs with %d nodes, %.0f µs with %d", at(2, middle, "simulated_us"), middle, two, last),
		Verdict:  verdict(two/at(2, middle, "simulated_us") < 2.2), Runs: t.runs(),
	}}
	latency := func(a, n int) float64 { return at(a, n, "latency_us") }
	switch b.name {
	case "sm-figure-6.3":
		claims = append(claims, Claim{
			where: "§6.1.2, Figure 6.5", Claim: "latency under contention climbs steeply until so many nodes, binary and 4-ary",
			Stated:   "3 and 5, then a small increase",
			Measured: fmt.Sprintf("%s and %s, then none", figure(climbs(t, 2), 0), figure(climbs(t, 4), 0)),
			Verdict:  verdict(climbs(t, 2) == 3 && climbs(t, 4) == 5), Runs: t.runs(),
			Note: "the small increase is the switch's, which LogP does not have",
		})
	case "sm-figure-6.6":
		claims = append(claims, Claim{
			where: "§6.1.2, Figure 6.8", Claim: "latency under contention as the number of nodes grows (fully formed tree)",
			Stated:   "constant",
			Measured: fmt.Sprintf("%.1f µs with 3 nodes, %.1f with 25", latency(2, 3), latency(2, 25)),
			Verdict:  verdict(latency(2, 3) == latency(2, 25)), Runs: t.runs(),
		}, Claim{
			where: "§6.1.2, Figure 6.8", Claim: "latency under contention with four children instead of two",
			Stated:   "increases significantly",
			Measured: fmt.Sprintf("%.1f µs against %.1f", latency(4, last), latency(2, last)),
			Verdict:  verdict(latency(4, last) > 1.05*latency(2, last)), Runs: t.runs(),
		})
	case "sm-figure-6.1":
		claims = append(claims, Claim{
			where: "§6.1.1", Claim: "time with 1,024 nodes is in the order of microseconds", Stated: "below a millisecond",
			Measured: fmt.Sprintf("%.0f µs with a = 2 (base model %.0f µs)", two, at(2, last, "model_us")),
			Verdict:  verdict(two < 1000), Runs: t.runs(),
			Note: "the base model leaves out hops of the torus, as the thesis says",
		}, Claim{
			where: "§6.1.1, Figure 6.2", Claim: "a = 4 is faster than a = 2", Stated: "slightly smaller",
			Measured: fmt.Sprintf("%.0f µs against %.0f µs", four, two), Verdict: verdict(four < two), Runs: t.runs(),
			Note: "without the torus' hops, which grow with a, the gain is larger than measured in the thesis",
		})
	case "sm-figure-6.9":
		claims = append(claims, Claim{
			where:    "§6.1.3, Figure 6.9",
			Claim:    "contention model and stabilization time of full trees, a = 2: largest difference",
			Stated:   "resembles very closely",
			Measured: percent(b.apart(t, 2), 1), Verdict: verdict(b.apart(t, 2) < 0.1), Runs: t.runs(),
			Note: "both are of the LogP model here; the thesis compares with what it measured",
		}, Claim{
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

// climbs is the number of nodes from which on latency does not rise any more.
func climbs(t *Table, children int) (nodes float64) {
	t = t.where("children", children)
	latency, all := t.numbers("latency_us"), t.numbers("nodes")
	for i := len(all) - 1; i >= 0 && latency[i] == latency[len(all)-1]; i-- {
		nodes = all[i]
	}
	return nodes
}

// apart is by how much the contention model is off at most, as a share, where the
// tree is full: with 3, 7, 15 nodes and so on.
func (b testBed) apart(t *Table, children int) (most float64) {
	t = t.where("children", children)
	nodes, model, simulated := t.numbers("nodes"), t.numbers("contention_us"), t.numbers("simulated_us")
	for i, n := range nodes {
		if int(n)&(int(n)+1) == 0 {
			most = max(most, math.Abs(model[i]/simulated[i]-1))
		}
	}
	return most
}
