package experiments

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

// drill is what all processes of a job do.
type drill struct {
	Members   int
	Exercises []exercise
	// Rounds is how often each exercise is done: all in turn, in every second
	// round backwards, so that what else the machine does falls on all of them.
	Rounds int
	// Victim, unless it is nobody, dies in one more round of the first exercise:
	// before it, after it, or during it, when this share of its usual time is over.
	Victim int
	Phase  string
	Moment float64
}

const nobody = -1

// exercise is a collective with so many bytes from one process to another. Plain
// has it without fault tolerance: of the strength that only reports failures, and
// keeps nothing for takeovers.
type exercise struct {
	Call  string
	Bytes int
	Plain bool
}

// drillReport is what a process tells at the end, in microseconds.
type drillReport struct {
	Times    [][]float64 // by exercise and round
	Recovery float64     // the round in which the victim died
}

// run is one process's part. It dies by die.
func (d *drill) run(ctx context.Context, w *pleach.World, die func()) (*drillReport, error) {
	r := &drillReport{Times: make([][]float64, len(d.Exercises))}
	acts := make([]act, len(d.Exercises))
	for i, e := range d.Exercises {
		var err error
		if acts[i], err = e.prepare(w); err != nil {
			return nil, err
		}
	}
	for round := range d.Rounds + warmUp {
		for n := range acts {
			i := n
			if round%2 == 1 {
				i = len(acts) - 1 - n
			}
			took, err := acts[i].round(ctx, w)
			if err != nil {
				return nil, fmt.Errorf("experiments: %+v, round %d: %w", d.Exercises[i], round, err)
			}
			if round >= warmUp {
				r.Times[i] = append(r.Times[i], took)
			}
		}
	}
	if d.Victim != nobody {
		last := acts[0]
		if w.Rank() == d.Victim {
			last.call = d.dying(last.call, r, die)
		}
		var err error
		if r.Recovery, err = last.round(ctx, w); err != nil {
			return nil, fmt.Errorf("experiments: %+v, rank %d dies %s it: %w", d.Exercises[0], d.Victim, d.Phase, err)
		}
	}
	return r, w.Finish(ctx)
}

// warmUp is how many rounds do not count: connections are made in them.
const warmUp = 3

// round is one as the thesis times it (§5.1): all wait for each other before the
// call and after it, and the time is taken after the first wait and after the
// second.
func (a act) round(ctx context.Context, w *pleach.World) (micros float64, err error) {
	if err := collective.Barrier(ctx, w); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := a.call(ctx); err != nil {
		return 0, err
	}
	if err := collective.Barrier(ctx, w); err != nil {
		return 0, err
	}
	return float64(time.Since(began).Nanoseconds()) / 1000, a.check()
}

// dying is the call as the victim makes it.
func (d *drill) dying(call func(context.Context) error, r *drillReport, die func()) func(context.Context) error {
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
