package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
	"github.com/pleach-go/pleach/lab/chart"
)

// Corrected Trees' Figures 11 and 12: median latency of real processes.

// processRuns is their source.
func processRuns() *Source {
	return &Source{
		Name: "ct-processes", Seed: 1, Tables: []string{"latency"},
		Cost: [sizes]float64{1, 12, 60}, measure: measureProcesses,
	}
}

const processesAbout = "The paper measures MPI processes on up to 512 nodes of a supercomputer; here every member is a process on this machine, all share its cores, and messages " +
	"of 64 bytes go over TCP. The baseline is a binomial tree over persistent connections and nothing else; rounds of all systems take turns. Only ratios mean something. "

func figure11(runs *Source) Experiment {
	return Experiment{
		Name: "ct-figure-11", Paper: trees, Title: "Broadcast median latency of real processes, fault-free",
		About: processesAbout, Source: runs, charts: drawFigure11, claims: judgeFigure11,
	}
}

func figure12(runs *Source) Experiment {
	return Experiment{
		Name: "ct-figure-12", Paper: trees, Title: "Broadcast median latency of real processes, with dead members",
		About:  processesAbout + "One member, an inner node of the tree, is dead from the start, and no member knows.",
		Source: runs, charts: drawFigure12, claims: judgeFigure12,
	}
}

func measureProcesses(j *job) (Data, error) {
	sizes := []int{4, 8, 16, 32}[:j.pick(1, 3, 4)]
	t := newTable("comparison", "system", "members", "dead", "p10_us", "p50_us", "p99_us", "complete",
		"messages_per_member", "runs")
	// Below a dead inner node a tree alone reaches no member: waiting for it would
	// only take time.
	comparisons := []struct {
		name    string
		systems []string
		dead    []int
	}{{"systems", []string{"pleach", "bare"}, []int{0}}, {"faults", []string{"pleach"}, []int{0, 1}}}
	steps := float64(len(sizes) * len(comparisons))
	step := 0.0
	for _, members := range sizes {
		for _, comparison := range comparisons {
			c := broadcast.Config{
				Systems: comparison.systems, Members: members, Dead: comparison.dead, Size: 64,
				Rounds: j.pick(10, 200, 1000), Processes: len(j.Member) > 0, Command: j.Member, Seed: j.seed,
			}
			c.Progress = func(done int) { j.done((step + float64(done)/float64(c.Rounds)) / steps) }
			results, err := broadcast.Run(j.ctx, c)
			if err != nil {
				return nil, err
			}
			for _, r := range results {
				t.add(comparison.name, r.System, r.Members, r.Dead, r.P10, r.P50, r.P99, r.Complete, r.Messages, r.Rounds)
			}
			step++
		}
	}
	return Data{"latency": t}, nil
}

func processChart(name, title string, t *Table, curves []processCurve) []chart.Chart {
	c := chart.Chart{
		Name: name, Title: title, X: chart.Axis{Label: "processes", Log: true, Ticks: chart.Powers(2, 5, 1)},
		Y: chart.Axis{Label: "median latency [µs]"},
	}
	for _, curve := range curves {
		points := t.where("system", curve.system).where("dead", curve.dead).points("members", "p50_us", "", "")
		c.Series = append(c.Series, chart.Series{Name: curve.title, Color: curve.color, Points: points})
	}
	return []chart.Chart{c}
}

// processCurve is a system with a number of dead.
type processCurve struct {
	system string
	dead   int
	title  string
	color  int
}

func drawFigure11(d Data) []chart.Chart {
	return processChart("ct-figure-11", "Broadcast on real processes, fault-free",
		d["latency"].where("comparison", "systems"), []processCurve{
			{"pleach", 0, "Pleach", 0}, {"bare", 0, "binomial tree alone", 1},
		})
}

func drawFigure12(d Data) []chart.Chart {
	return processChart("ct-figure-12", "Broadcast on real processes, with faults",
		d["latency"].where("comparison", "faults"), []processCurve{
			{"pleach", 0, "Pleach", 0}, {"pleach", 1, "Pleach, one dead", 2},
		})
}

// ratios are those of medians, by members.
func ratios(t *Table, dead, toDead int, to string) []float64 {
	var all []float64
	ours, theirs := t.where("system", "pleach").where("dead", dead).numbers("p50_us"),
		t.where("system", to).where("dead", toDead).numbers("p50_us")
	for i := range ours {
		all = append(all, ours[i]/theirs[i])
	}
	return all
}

func times(v float64) string { return fmt.Sprintf("%.2f", v) }

func judgeFigure11(d Data) []Claim {
	t := d["latency"].where("comparison", "systems")
	r := ratios(t, 0, 0, "bare")
	return []Claim{{
		where: "§4.4, Figure 11", Claim: "latency of the fault-tolerant broadcast compared with a binomial one",
		Stated:   "comparable (very similar)",
		Measured: span(times, r...) + " times, by group size", Verdict: shown(r[len(r)-1] < 2), Runs: t.runs(),
		Note: "correction costs more where all processes share a few cores than where each has its own",
	}}
}

func judgeFigure12(d Data) []Claim {
	t := d["latency"].where("comparison", "faults")
	r := ratios(t, 1, 0, "pleach")
	dead := t.where("dead", 1)
	return []Claim{
		{
			where:    "§4.4, Figure 12",
			Claim:    "latency with failed processes (72 of up to 36,864; here one of each group) compared with none",
			Stated:   "no change",
			Measured: span(times, r...) + " times, by group size", Verdict: shown(r[len(r)-1] < 1.5), Runs: t.runs(),
			Note: "one dead of so few is a far larger share than in the paper, and an inner node",
		},
		{
			where: "§4.4", Claim: "broadcasts that reach every live process although one is dead", Stated: "all",
			Measured: fmt.Sprintf("%.0f of %.0f", dead.sum("complete"), dead.sum("runs")),
			Verdict:  shown(dead.sum("complete") == dead.sum("runs")), Runs: dead.runs(),
			Note: "a round counts only if all have the message within a second, which a busy machine can spoil",
		},
	}
}

// shown takes what a busy machine spoils for not shown.
func shown(same bool) Verdict {
	if same {
		return Agrees
	}
	return NotShown
}
