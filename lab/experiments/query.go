package experiments

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
)

// How long TPC-H's Query 3 takes when a process dies in one of its four phases, beside a
// restart, as the thesis on fault-tolerant collectives measures it (Stengler 2017, §5.3.2
// and §5.4, Figures 5.17 to 5.24): weak scaling, and whole jobs from the start of the
// first process to the end of the last.

// Queries says what to measure.
type Queries struct {
	// Members is the size of the jobs.
	Members int
	// Scale is the scale factor of each process's data: 1 is the thesis's, 1 GB.
	Scale float64
	// Trials is how often each job is run. Seed chooses the victims.
	Trials int
	Seed   uint64
	// Command starts a process of a job. See [Overheads].
	Command []string
	// Progress, if not nil, is called with the share that is done.
	Progress func(share float64)
}

// RootRow is a query whose root dies in the last phase.
type RootRow struct {
	Call    string // reduce, allreduce
	Moment  string // before or after the call
	Members int
	Trials  int
	// Returned is in how many trials the call has returned the result to a survivor,
	// and TakenOver in how many a survivor has got it as the owner of the root's task.
	Returned, TakenOver int
}

// Measure runs all jobs: those of a trial one after the other, so that other load of the
// machine falls on all of them.
func (q *Queries) Measure(ctx context.Context) (rows []ApplicationRow, roots []RootRow, err error) {
	if q.Trials < 1 || q.Members < 2 {
		return nil, nil, fmt.Errorf("experiments: %d queries of %d members: choose 1 trial or more, and 2 members or more",
			q.Trials, q.Members)
	}
	folder, err := os.MkdirTemp("", "pleach-query-*")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	t, err := newQueryTrials(q, folder)
	if err != nil {
		return nil, nil, err
	}
	tell := steps(q.Trials+1, q.Progress)
	rng := rand.New(rand.NewPCG(q.Seed, uint64(q.Members)))
	for range q.Trials {
		for _, data := range []string{Generated, Present} {
			if err := t.run(ctx, data, rng); err != nil {
				return nil, nil, fmt.Errorf("experiments: query 3, %d members, %s data: %w", q.Members, data, err)
			}
		}
		tell()
	}
	roots, err = q.measureRoots(ctx)
	tell()
	return t.seen.rows(q.Members), roots, err
}

// measureRoots kills the root around the last call.
func (q *Queries) measureRoots(ctx context.Context) (rows []RootRow, err error) {
	t, err := newQueryTrials(&Queries{Members: q.Members, Scale: rootScale / float64(q.Members), Command: q.Command}, "")
	if err != nil {
		return nil, err
	}
	for _, call := range []string{"reduce", "allreduce"} {
		for i, moment := range []string{before, after} {
			phase := []int{phaseJoin, afterQuery}[i]
			row := RootRow{Call: call, Moment: moment, Members: q.Members, Trials: q.Trials}
			for range q.Trials {
				one := query{Data: t.data[Generated], Approach: RunThrough, Phase: phase, ToRoot: call == "reduce"}
				reports, _, err := t.attempt(ctx, &one, false)
				if err != nil {
					return rows, fmt.Errorf("experiments: query 3, the root dies %s the %s: %w", moment, call, err)
				}
				if has(reports, func(r *queryReport) bool { return slices.Equal(r.Rows, t.answer) }) {
					row.Returned++
				}
				if has(reports, func(r *queryReport) bool { return slices.Equal(r.TakenOver, t.answer) }) {
					row.TakenOver++
				}
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// rootScale is the scale factor of all data where only the result counts.
const rootScale = 0.01
