package reproduce

import (
	"fmt"
	"math"
	"runtime"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// How long a simulated broadcast takes: growth with the number of processes, and
// beside flogsim, the simulator of Corrected Trees' authors.

func simSpeed() Experiment {
	return Experiment{
		Name: "sim-speed", Paper: leftOpen,
		Title: "Time and memory of one simulated broadcast, to a billion processes",
		About: "L = 2, o = 1, synchronized checked correction, one core. Growth: binomial tree, 0.01% dead, both engines, which show the same; all memory that is taken is counted. " +
			"Beside flogsim: P = 65,536, the shortest of a few runs. Its figures were measured once, on another machine of the same kind (2 virtual cores): only orders of magnitude mean something.",
		Source: &Source{
			Name: "sim-speed", Seed: 1, Tables: []string{"growth", "beside"},
			Cost: [sizes]float64{0.2, 5, 25}, measure: measureSpeed,
		},
		charts: drawSpeed, claims: judgeSpeed,
	}
}

// flogsim is what it takes for one broadcast, in seconds: with none and with 4%
// dead.
var flogsim = map[string][2]float64{
	"binomial": {2.99, 4.00}, "kary:4": {3.07, 3.85}, "lame:2": {2.99, 4.79}, "optimal": {3.15, 4.52},
	"gossip": {4.1, 5.1},
}

func measureSpeed(j *job) (Data, error) {
	growth := newTable("engine", "processes", "seconds", "bytes", "quiescence", "runs")
	from := j.pick(10, 16, 16)
	largest := map[string]int{experiments.EngineEvents: j.pick(12, 18, 22), experiments.EngineSparse: j.pick(14, 24, 30)}
	for _, engine := range []string{experiments.EngineEvents, experiments.EngineSparse} {
		for log := from; log <= largest[engine]; log += 2 {
			size := protocol.Rank(1) << log
			s := experiments.Scenario{
				Size: size, L: 2, O: 1, Dissemination: "tree", Shape: topology.Binomial(), Correction: "checked",
				Start: broadcast.Synchronized,
				Dead:  int(size) / 10_000, Seed: j.seed, Engine: engine,
			}
			if err := speedRow(j, s, engine, growth); err != nil {
				return nil, err
			}
			j.done(0.9 * math.Exp2(float64(log-largest[engine])))
		}
	}
	beside := newTable("broadcast", "dead_percent", "engine", "seconds", "flogsim_seconds", "runs")
	for _, b := range broadcastNames {
		for i, percent := range []int{0, 4} {
			if err := besideRow(j, b.name, percent, flogsim[b.name][i], beside); err != nil {
				return nil, err
			}
		}
	}
	return Data{"growth": growth, "beside": beside}, nil
}

// speedRow adds what one run takes, its preparation included.
func speedRow(j *job, s experiments.Scenario, engine string, t *Table) error {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s.Runs = 1
	report, err := s.Run(j.ctx, nil)
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	t.add(engine, int64(s.Size), report.Seconds, int64(after.TotalAlloc-before.TotalAlloc), report.Quiescence.Mean, 1)
	return nil
}

// besideRow adds the shortest of a few runs of each engine that can do it.
func besideRow(j *job, name string, percent int, theirs float64, t *Table) error {
	size := protocol.Rank(j.pick(1024, 65536, 65536))
	s := experiments.Scenario{
		Size: size, L: 2, O: 1, Dissemination: "tree", Correction: "checked", Start: broadcast.Synchronized,
		Dead: int(size) * percent / 100, Runs: 1, Seed: j.seed,
	}
	engines := []string{experiments.EngineEvents, experiments.EngineSparse}
	if name == "gossip" {
		s.Dissemination, s.GossipTime = "gossip", checkedGossipTime
		engines = engines[:1]
	} else {
		shape, err := topology.ParseShape(name, 2, 1)
		if err != nil {
			return err
		}
		s.Shape = shape
	}
	for _, engine := range engines {
		s.Engine = engine
		runs, shortest := j.pick(1, 5, 20), math.Inf(1)
		for range runs {
			report, err := s.Run(j.ctx, nil)
			if err != nil {
				return err
			}
			shortest = min(shortest, report.Seconds)
		}
		t.add(name, percent, engine, shortest, theirs, runs)
	}
	return nil
}

func drawSpeed(d Data) []chart.Chart {
	t := d["growth"]
	sizes := t.where("engine", experiments.EngineSparse).numbers("processes")
	x := chart.Axis{Label: "processes", Log: true, Ticks: chart.Powers(int(math.Log2(sizes[0])),
		int(math.Log2(sizes[len(sizes)-1])), 2)}
	charts := []chart.Chart{
		{Name: "sim-speed-time", Title: "One simulated broadcast: time", X: x, Y: chart.Axis{
			Label: "seconds", Log: true,
			Ticks: chart.At(0.001, 0.01, 0.1, 1, 10, 100),
		}},
		{
			Name: "sim-speed-memory", Title: "One simulated broadcast: memory", X: x,
			Y: chart.Axis{Label: "memory [MB]", Log: true, Ticks: chart.At(0.1, 1, 10, 100, 1000, 10000)},
		},
	}
	for i, engine := range []string{experiments.EngineEvents, experiments.EngineSparse} {
		rows := t.where("engine", engine)
		memory := rows.points("processes", "bytes", "", "")
		for k := range memory {
			memory[k].Y /= 1e6
		}
		name := map[string]string{experiments.EngineEvents: "event-driven", experiments.EngineSparse: "sparse"}[engine]
		charts[0].Series = append(charts[0].Series,
			chart.Series{Name: name, Color: i, Points: rows.points("processes", "seconds", "", "")})
		charts[1].Series = append(charts[1].Series, chart.Series{Name: name, Color: i, Points: memory})
	}
	// Seconds and gigabytes at 2^16, 2^18, 2^20 and 2^21.
	theirs := [][3]float64{{16, 2.99, 0.555}, {18, 10.6, 2.25}, {20, 60, 9}, {21, 117, 17.9}}
	for i := range charts {
		var points []chart.Point
		for _, p := range theirs {
			points = append(points, chart.Point{X: math.Exp2(p[0]), Y: []float64{p[1], 1000 * p[2]}[i]})
		}
		charts[i].Series = append(charts[i].Series, chart.Series{
			Name: "flogsim", Kind: chart.Dashed, Color: chart.Black,
			Points: points,
		})
	}
	return charts
}

func judgeSpeed(d Data) []Claim {
	var claims []Claim
	for _, b := range broadcastNames {
		for i, percent := range []int{0, 4} {
			t := d["beside"].where("broadcast", b.name).where("dead_percent", percent)
			measured := fmt.Sprintf("%.1f ms", 1000*t.where("engine", experiments.EngineEvents).number("seconds"))
			if sparse := t.where("engine", experiments.EngineSparse); len(sparse.Rows) > 0 {
				measured += fmt.Sprintf(", sparse engine %.2f ms", 1000*sparse.number("seconds"))
			}
			claims = append(claims, Claim{
				where: "Corrected Trees §4", Claim: fmt.Sprintf("one simulated broadcast, %s, %d%% dead: time", b.title, percent),
				Stated:   fmt.Sprintf("flogsim: %.2f s", flogsim[b.name][i]),
				Measured: measured, Verdict: Answered, Runs: t.runs(),
			})
		}
	}
	t := d["growth"].where("engine", experiments.EngineSparse)
	last := len(t.Rows) - 1
	return append(claims, Claim{
		where: "Corrected Trees §4",
		Claim: fmt.Sprintf("one simulated broadcast, 2^%.0f processes, 0.01%% dead: time, memory",
			math.Log2(t.numbers("processes")[last])), Stated: "not said",
		Measured: fmt.Sprintf("%.2f s, %s MB", t.numbers("seconds")[last], figure(t.numbers("bytes")[last]/1e6, 0)),
		Verdict:  Answered, Runs: 1,
	})
}
