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

// Healing by views plus correction, against correction alone. Corrected Trees
// leaves "the removal or reactivation of dead processes" to others, the membership
// thesis has no broadcast that survives without it.

func openHealing() Experiment {
	return Experiment{
		Name: "open-healing", Paper: leftOpen,
		Title: "Dead that are known and routed around, and dead that only correction finds",
		About: "P = 65,536, L = 2, o = 1, synchronized checked correction, 1 and 4% dead. Of the dead, none to all are known: a view has removed them and the ring has no holes. " +
			"Either their children are their parents' and all others stay where they are, or the tree is laid anew over the processes that are left. " +
			"Unknown dead are found by correction alone. Messages are per live process.",
		Source: &Source{
			Name: "open-healing", Seed: 1, Tables: []string{"known"},
			Cost: [sizes]float64{0.5, 9, 30}, measure: measureHealing,
		},
		charts: drawHealing, claims: judgeHealing,
	}
}

var (
	healingRates  = []float64{0.01, 0.04}
	healingKnown  = []int{0, 25, 50, 75, 90, 100} // percent of the dead
	healingShapes = []topology.Shape{topology.Binomial(), topology.Lame(2)}
)

// healingViews are what a view does to the tree. Package stream keeps holes, so
// that the living keep their places and connections.
var healingViews = []struct{ name, title string }{{"holes", "children adopted"}, {"anew", "laid anew"}}

func measureHealing(j *job) (Data, error) {
	size := protocol.Rank(j.pick(256, 65536, 65536))
	runs := j.pick(1, 3, 10)
	t := newTable("view", "broadcast", "dead_percent", "known_percent", "coloring", "quiescence", "correction_time", "gap",
		"messages_per_process", "runs")
	all := float64(len(healingViews) * len(healingShapes) * len(healingRates) * len(healingKnown))
	for _, view := range healingViews {
		for _, shape := range healingShapes {
			for _, rate := range healingRates {
				for _, known := range healingKnown {
					results, err := logp.Repeat(j.ctx, runs, func() (func(run int) (logp.Result, error), error) {
						return func(run int) (logp.Result, error) {
							h := healing{shape, size, int(rate * float64(size)), known, view.name == "anew"}
							return h.run(j, j.seed+uint64(run))
						}, nil
					}, nil)
					if err != nil {
						return nil, err
					}
					of := func(figure func(*logp.Result) float64) float64 { return logp.Distribute(results, figure).Mean }
					t.add(view.name, shape, 100*rate, known,
						of(func(r *logp.Result) float64 { return float64(r.Coloring) }),
						of(func(r *logp.Result) float64 { return float64(r.Quiescence) }),
						of(func(r *logp.Result) float64 { return float64(r.CorrectionTime) }),
						of(func(r *logp.Result) float64 { return float64(r.MaxGap) }),
						of(func(r *logp.Result) float64 { return float64(r.Total()) / float64(r.Live) }), runs)
					j.done(float64(len(t.Rows)) / all)
				}
			}
		}
	}
	return Data{"known": t}, nil
}

// healing is a broadcast to the processes that are left by a view that knows a share of
// the dead, in percent.
type healing struct {
	shape       topology.Shape
	size        protocol.Rank
	dead, known int
	anew        bool // the tree is laid anew, not healed
}

func (h *healing) run(j *job, seed uint64) (logp.Result, error) {
	var gone, unknown []protocol.Rank
	for i, r := range logp.RandomDead(h.size, 0, h.dead, seed) {
		// Every so manieth of them, as they are in order of rank.
		if (i+1)*h.known/100 > i*h.known/100 {
			gone = append(gone, r)
		} else {
			unknown = append(unknown, r-protocol.Rank(len(gone)))
		}
	}
	size := h.size
	if h.anew {
		size -= protocol.Rank(len(gone))
	}
	tree, err := topology.New(h.shape, topology.Interleaved, size, 0)
	if err != nil {
		return logp.Result{}, err
	}
	if !h.anew {
		tree = experiments.Heal(tree, gone)
	}
	s := experiments.Scenario{
		Size: tree.Size(), L: 2, O: 1, Dissemination: "tree", Tree: tree, Correction: "checked",
		Start: broadcast.Synchronized,
		Fixed: logp.Faults{Dead: unknown}, Runs: 1, Seed: seed,
	}
	report, err := s.Run(j.ctx, nil)
	if err != nil {
		return logp.Result{}, err
	}
	return report.Results[0], nil
}

func drawHealing(d Data) []chart.Chart {
	charts := []chart.Chart{
		{
			Name: "open-healing-correction", Title: "Known dead and correction time, 4% dead (P = 64K)",
			Y: chart.Axis{Label: "correction time [steps]"},
		},
		{
			Name: "open-healing-quiescence", Title: "Known dead and quiescence latency, 4% dead (P = 64K)",
			Y: chart.Axis{Label: "quiescence latency [steps]"},
		},
	}
	for n, column := range []string{"correction_time", "quiescence"} {
		c := &charts[n]
		c.X = chart.Axis{Label: "dead that are known [%]", Ticks: chart.At(0, 25, 50, 75, 90, 100)}
		for i, shape := range healingShapes {
			for k, view := range healingViews {
				t := d["known"].where("view", view.name).where("broadcast", shape).where("dead_percent", 4)
				c.Series = append(c.Series, chart.Series{
					Name: fmt.Sprintf("%s, %s", shape, view.title), Color: i, Kind: []chart.Kind{chart.Line, chart.Dashed}[k],
					Points: t.points("known_percent", column, "", ""),
				})
			}
		}
	}
	return charts
}

func judgeHealing(d Data) []Claim {
	var claims []Claim
	for _, shape := range healingShapes {
		for _, view := range healingViews {
			t := d["known"].where("view", view.name).where("broadcast", shape).where("dead_percent", 4)
			at := func(known int, column string) float64 { return t.where("known_percent", known).number(column) }
			three := func(column string, decimals int) string {
				return fmt.Sprintf("%.*f, %.*f, %.*f", decimals, at(0, column), decimals, at(90, column), decimals, at(100, column))
			}
			claims = append(claims, Claim{
				where: "Corrected Trees §2.1", Claim: fmt.Sprintf("%s, 4%% dead, of which none, 90%% and all are known, %s", shape,
					view.title), Stated: "out of scope",
				Measured: fmt.Sprintf("correction %s steps, quiescence %s; messages per process %s",
					three("correction_time", 1), three("quiescence", 1), three("messages_per_process", 2)),
				Verdict: Answered, Runs: t.runs(),
			})
		}
	}
	return claims
}
