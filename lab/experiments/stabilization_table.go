package experiments

import (
	"context"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// StabilizationRow is what several runs of one kind of change showed.
type StabilizationRow struct {
	Stabilization
	Runs int
	// Time is Ts; Messages and Ballots are per change.
	Time, Messages, Ballots logp.Distribution
	// ByKind are the messages by kind, the mean.
	ByKind [membership.Kinds]float64
	// Base and Contention are the thesis's models for a binary tree, Model that
	// of our own protocol.
	Base, Contention float64
	Model            protocol.Time
}

// StabilizationCases are the kinds of change that are tabled for a size: one
// death, reported by two neighbors on the ring; 1% dead, reported in the same
// way; and 1% that a feed reports to the coordinator.
func StabilizationCases(size protocol.Rank) []Stabilization {
	percent := max(1, int(size)/100)
	return []Stabilization{
		{Size: size, L: 2, O: 1, Dead: 1, Watchers: 2},
		{Size: size, L: 2, O: 1, Dead: percent, Watchers: 2},
		{Size: size, L: 2, O: 1, Dead: percent},
	}
}

// Stabilizations runs every case of a size a number of times, one after another:
// the largest take gigabytes each.
func Stabilizations(ctx context.Context, size protocol.Rank, runs int, seed uint64) ([]StabilizationRow, error) {
	var rows []StabilizationRow
	for _, s := range StabilizationCases(size) {
		results := make([]StabilizationResult, runs)
		for i := range results {
			if err := ctx.Err(); err != nil {
				return rows, err
			}
			s.Seed = seed + uint64(i)
			r, err := s.Run()
			if err != nil {
				return rows, err
			}
			results[i] = *r
		}
		row := StabilizationRow{
			Stabilization: s, Runs: runs,
			Base: s.Base(2).Time(size), Contention: s.Contention(2).Time(size),
		}
		var err error
		row.Model, err = s.Model()
		if err != nil {
			return rows, err
		}
		row.sum(results)
		rows = append(rows, row)
	}
	return rows, nil
}

func (row *StabilizationRow) sum(results []StabilizationResult) {
	of := func(figure func(*StabilizationResult) float64) logp.Distribution {
		return logp.Distribute(results, figure)
	}
	row.Time = of(func(r *StabilizationResult) float64 { return float64(r.Time) })
	row.Messages = of(func(r *StabilizationResult) float64 { return float64(r.Total) })
	row.Ballots = of(func(r *StabilizationResult) float64 { return float64(r.Ballots) })
	for kind := range row.ByKind {
		row.ByKind[kind] = of(func(r *StabilizationResult) float64 { return float64(r.Messages[kind]) }).Mean
	}
}
