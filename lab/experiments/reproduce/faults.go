package reproduce

import (
	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// What Corrected Trees' §4.3 runs, two million times: broadcasts with dead
// processes. Figures 8, 9 and 10 and Table 1 are views of the same runs.

// faultRuns is their source.
func faultRuns() *Source {
	return &Source{
		Name: "ct-faults", Seed: 1, Tables: []string{"summary", "gaps"},
		Cost: [sizes]float64{0.3, 25, 1000}, measure: measureFaults,
	}
}

// faultsAbout is what the experiments say of their runs.
const faultsAbout = "P = 65,536, L = 2, o = 1; 0.01, 0.1, 1, 2 and 4% of the processes are dead from the start, chosen at random anew in each run. " +
	"Trees with synchronized checked correction; a full reproduction does the paper's 10^5 runs of every tree and rate. "

func measureFaults(j *job) (Data, error) {
	size := protocol.Rank(j.pick(2048, 65536, 65536))
	var cells []cell
	for _, rate := range experiments.Table1Rates() {
		dead := int(rate * float64(size))
		for i, shape := range experiments.Table1Shapes(2, 1) {
			runs := j.pick(20, 2000, 100_000)
			cells = append(cells, cell{[]any{100 * rate, shape.String()}, experiments.Scenario{
				Size: size, L: 2, O: 1, Dissemination: "tree", Shape: shape,
				Correction: "checked", Start: broadcast.Synchronized, Dead: dead, Runs: runs, Seed: j.seed + uint64(i),
			}, float64(runs) * (5 + float64(dead))})
		}
		runs := j.pick(2, 16, 200)
		cells = append(cells, cell{[]any{100 * rate, "gossip"}, experiments.Scenario{
			Size: size, L: 2, O: 1, Dissemination: "gossip", GossipTime: checkedGossipTime,
			Correction: "checked", Start: broadcast.Synchronized, Dead: dead, Runs: runs, Seed: j.seed,
		}, float64(runs) * 150_000})
	}
	summary := newTable("dead_percent", "broadcast", "quiescence", "quiescence_stddev", "quiescence_p5", "quiescence_p95",
		"messages_per_process", "messages_p5", "messages_p95", "outside_lemma_3", "unreached", "runs")
	gaps := newTable("dead_percent", "broadcast", "gap", "time", "runs")
	return j.tabulate(cells, Data{"summary": summary, "gaps": gaps}, func(c cell, r *experiments.Report) {
		q, m := r.Quiescence, r.MessagesPerProcess
		outside := 0
		if c.labels[1] != "gossip" {
			outside = countGaps(gaps, c, r.Results)
		}
		summary.add(c.labels[0], c.labels[1], q.Mean, q.StdDev, q.P5, q.P95, m.Mean, m.P5, m.P95, outside,
			r.Unreached.Runs, r.Runs)
	})
}

// countGaps adds a row for every pair of gap and correction time that occurred,
// and returns how many runs broke Lemma 3.
func countGaps(t *Table, c cell, results []logp.Result) (outside int) {
	type pair struct {
		gap  protocol.Rank
		time protocol.Time
	}
	counts := map[pair]int{}
	for i := range results {
		r := &results[i]
		counts[pair{r.MaxGap, r.CorrectionTime}]++
		if low, high := logp.CheckedBounds(r.MaxGap, 2, 1); r.CorrectionTime < low || r.CorrectionTime > high {
			outside++
		}
	}
	for _, p := range sortedKeys(counts, func(a, b pair) int {
		return int(a.gap-b.gap)*1_000_000 + int(a.time-b.time)
	}) {
		t.add(c.labels[0], c.labels[1], int64(p.gap), int64(p.time), counts[p])
	}
	return outside
}
