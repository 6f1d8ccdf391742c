package experiments

import (
	"context"
	"fmt"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Table1Rates are the fault rates of Corrected Trees' Table 1, as fractions.
func Table1Rates() []float64 { return []float64{0.0001, 0.001, 0.01, 0.02, 0.04} }

// Table1Shapes are its trees.
func Table1Shapes(l, o protocol.Time) []topology.Shape {
	return []topology.Shape{topology.Binomial(), topology.KAry(4), topology.Lame(2), topology.Optimal(l, o)}
}

// Table1Row is one fault rate of Table 1, "cost of correction under faults
// aggregated for all tree types": the maximum gap after dissemination and the
// time synchronized checked correction takes.
type Table1Row struct {
	Rate           float64
	Gap, Time      logp.Distribution
	Runs           int
	OutsideLemma3  int // runs outside the bounds of Lemma 3
	UnreachedRuns  int
	GapOverTen     int
	ByShape        map[string]logp.Distribution // quiescence latency by shape
	FirstRunDigest string                       // what the first runs of each shape showed, to tell whether a change alters results
}

// table1Digested is how many first runs of a shape and rate the digest covers.
const table1Digested = 5

// Table1 simulates broadcasts on size processes, runs of them for every shape
// and rate.
func Table1(ctx context.Context, size protocol.Rank, runs int, seed uint64, progress func(done, total int)) ([]Table1Row, error) {
	const l, o = 2, 1
	shapes := Table1Shapes(l, o)
	total := len(Table1Rates()) * len(shapes) * runs
	done := 0
	var rows []Table1Row
	for _, rate := range Table1Rates() {
		row := Table1Row{Rate: rate, ByShape: map[string]logp.Distribution{}}
		var all []logp.Result
		for i, shape := range shapes {
			s := Scenario{
				Size: size, L: l, O: o, Dissemination: "tree", Shape: shape,
				Correction: "checked", Start: broadcast.Synchronized,
				Dead: int(rate * float64(size)), Runs: runs, Seed: seed + uint64(i),
			}
			report, err := s.Run(ctx, func(n int) {
				if progress != nil {
					progress(done+n, total)
				}
			})
			if err != nil {
				return nil, err
			}
			done += runs
			row.ByShape[shape.String()] = report.Quiescence
			row.digest(report.Results)
			all = append(all, report.Results...)
		}
		row.sum(all, l, o)
		rows = append(rows, row)
	}
	return rows, nil
}

func (row *Table1Row) digest(results []logp.Result) {
	var gap, time, messages int64
	for _, r := range results[:min(len(results), table1Digested)] {
		gap += int64(r.MaxGap)
		time += int64(r.CorrectionTime)
		messages += r.Total()
	}
	row.FirstRunDigest += fmt.Sprintf(" %d/%d/%d", gap, time, messages)
}

func (row *Table1Row) sum(all []logp.Result, l, o protocol.Time) {
	row.Runs = len(all)
	row.Gap = logp.Distribute(all, func(r *logp.Result) float64 { return float64(r.MaxGap) })
	row.Time = logp.Distribute(all, func(r *logp.Result) float64 { return float64(r.CorrectionTime) })
	for i := range all {
		r := &all[i]
		if low, high := logp.CheckedBounds(r.MaxGap, l, o); r.CorrectionTime < low || r.CorrectionTime > high {
			row.OutsideLemma3++
		}
		if r.Unreached > 0 {
			row.UnreachedRuns++
		}
		if r.MaxGap > 10 {
			row.GapOverTen++
		}
	}
}
