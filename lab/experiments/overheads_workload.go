package experiments

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

// workload is what all processes of a job do.
type workload struct {
	Members int
	Cases   []testcase
	// Rounds is how often each case is run: all in order, in every second round
	// backwards, so that other load falls on all alike.
	Rounds int
	// Victim, unless it is noVictim, dies in one more round of the first case:
	// before it, after it, or during it, when this share of its usual time is over.
	Victim int
	Phase  string
	Moment float64
}

// testcase is a collective with so many bytes from one process to another. Report
// selects the failure mode that only reports failures, and keeps nothing for
// takeovers.
type testcase struct {
	Call   string
	Bytes  int
	Report bool
}

// taskReport is what a process has measured, in microseconds.
type taskReport struct {
	Times    [][]float64 // by case and round
	Recovery float64     // the round in which the victim died
}

// run runs the workload in one process. The victim dies by die.
func (d *workload) run(ctx context.Context, w *pleach.World, die func()) (any, error) {
	r := &taskReport{Times: make([][]float64, len(d.Cases))}
	calls := make([]preparedCall, len(d.Cases))
	for i, e := range d.Cases {
		var err error
		calls[i], err = e.prepare(w)
		if err != nil {
			return nil, err
		}
	}
	for round := range d.Rounds + warmUp {
		for n := range calls {
			i := n
			if round%2 == 1 {
				i = len(calls) - 1 - n
			}
			took, err := calls[i].round(ctx, w)
			if err != nil {
				return nil, fmt.Errorf("experiments: %+v, round %d: %w", d.Cases[i], round, err)
			}
			if round >= warmUp {
				r.Times[i] = append(r.Times[i], took)
			}
		}
	}
	if d.Victim != noVictim {
		last := calls[0]
		if w.Rank() == d.Victim {
			last.call = d.dying(last.call, r, die)
		}
		var err error
		r.Recovery, err = last.round(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("experiments: %+v, rank %d dies %s it: %w", d.Cases[0], d.Victim, d.Phase, err)
		}
	}
	return r, w.Finalize(ctx)
}

// warmUp is how many rounds do not count: connections are made in them.
const warmUp = 3

// round is a round as the thesis times it (§5.1): a barrier comes before the call
// and after it, and the time is from the end of the first to that of the second.
func (c preparedCall) round(ctx context.Context, w *pleach.World) (micros float64, err error) {
	if err := collective.Barrier(ctx, w); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := c.call(ctx); err != nil {
		return 0, err
	}
	if err := collective.Barrier(ctx, w); err != nil {
		return 0, err
	}
	return float64(time.Since(began).Nanoseconds()) / 1000, c.check()
}

// dying is the call as the victim makes it.
func (d *workload) dying(call func(context.Context) error, r *taskReport, die func()) func(context.Context) error {
	return func(ctx context.Context) error {
		switch d.Phase {
		case before:
			die()
		case during:
			usual := slices.Sorted(slices.Values(r.Times[0]))[len(r.Times[0])/2]
			time.AfterFunc(time.Duration(d.Moment*usual*1000), die)
		case after:
			defer die()
		}
		return call(ctx)
	}
}

// runJob runs the workload as a job of its own.
func (d *workload) runJob(ctx context.Context, command []string) ([]*taskReport, error) {
	return runJob[taskReport](ctx, &job{
		Members: d.Members, Victim: d.Victim, Plan: plan{Collectives: d},
		Command: command,
	})
}
