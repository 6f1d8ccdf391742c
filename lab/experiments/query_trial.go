package experiments

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pleach-go/pleach/lab/tpch"
)

// queryTrials are the jobs of one size.
type queryTrials struct {
	members int
	command []string
	data    map[string]dataset // by source
	answer  []tpch.Q3Row
	seen    tally
}

// newQueryTrials computes the answer and writes the partitions to a directory, if there is one.
func newQueryTrials(q *Queries, directory string) (*queryTrials, error) {
	generated := dataset{Scale: q.Scale * float64(q.Members), Members: q.Members}
	present := generated
	present.Directory = directory
	answer, err := generated.answer()
	if err != nil {
		return nil, err
	}
	if directory != "" {
		if err := present.write(); err != nil {
			return nil, err
		}
	}
	return &queryTrials{
		members: q.Members, command: q.Command, answer: answer, seen: tally{},
		data: map[string]dataset{Generated: generated, Present: present},
	}, nil
}

// normalRounds is how often the jobs in which no process dies are run in a trial: their
// times are the closest together.
const normalRounds = 3

// run runs the jobs of a trial. The same process dies in the same phase of all approaches.
func (t *queryTrials) run(ctx context.Context, data string, rng *rand.Rand) error {
	var normal trials
	for round := range normalRounds {
		order := []string{Plain, RunThrough, Optimized}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, approach := range order {
			took, err := t.complete(ctx, applicationCase{approach, data, noPhase}, noVictim)
			if err != nil {
				return err
			}
			if approach == Plain {
				normal.times = append(normal.times, took)
			}
		}
	}
	for phase := 1; phase <= phases; phase++ {
		victim := rng.IntN(t.members)
		if _, err := t.complete(ctx, applicationCase{RunThrough, data, phase}, victim); err != nil {
			return err
		}
		if phase == optimizedPhase {
			if _, err := t.complete(ctx, applicationCase{Optimized, data, phase}, victim); err != nil {
				return err
			}
		}
		reports, took, err := t.attempt(ctx, &query{Data: t.data[data], Approach: Plain, Victim: victim, Phase: phase}, true)
		if err != nil {
			return err
		}
		if has(reports, func(r *queryReport) bool { return len(r.Rows) > 0 }) {
			return fmt.Errorf("rank %d has died in phase %d, and there is a result without fault tolerance", victim, phase)
		}
		// "The time until the termination of the computation is measured and added to the
		// measured time of the successful computation" (§5.3.2).
		t.seen.add(applicationCase{Restart, data, phase}, took+normal.distribution().P50, 0)
	}
	return nil
}

// optimizedPhase is the one in which a process dies in Figure 5.24.
const optimizedPhase = phaseJoin

// complete runs a job that has to end with the right result, and returns its time in
// milliseconds.
func (t *queryTrials) complete(ctx context.Context, c applicationCase, victim int) (float64, error) {
	reports, took, err := t.attempt(ctx, &query{
		Data: t.data[c.data], Approach: c.approach, Victim: victim,
		Phase: c.phase,
	}, false)
	if err != nil {
		return 0, fmt.Errorf("%+v, victim %d: %w", c, victim, err)
	}
	if has(reports, func(r *queryReport) bool { return !slices.Equal(r.Rows, t.answer) }) {
		return 0, fmt.Errorf("%+v, victim %d: a survivor has a wrong result", c, victim)
	}
	restored := 0
	for _, r := range reports {
		if r != nil {
			restored += r.Restored
		}
	}
	t.seen.add(c, took, restored)
	return took, nil
}

// attempt runs a job, and ends it when the victim has died if that is fatal.
func (t *queryTrials) attempt(ctx context.Context, q *query, fatal bool) ([]*queryReport, float64, error) {
	return timedJob[queryReport](ctx, &job{
		Members: t.members, Victim: q.Victim, Fatal: fatal, Plan: plan{Query: q},
		Command: t.command,
	})
}

// has reports whether the report of a survivor is of a kind.
func has(reports []*queryReport, kind func(*queryReport) bool) bool {
	return slices.ContainsFunc(reports, func(r *queryReport) bool { return r != nil && kind(r) })
}
