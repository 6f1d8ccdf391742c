// Package workqueue has the processes of a job work off a list of items: a parameter sweep, files
// to convert, simulations with many seeds. When a process dies, others do its items, and one that
// replaces it (pleach run --respawn) gets new ones. Each item has one result, on all processes:
//
//	results, err := workqueue.Run(ctx, world, len(parameters), workqueue.Options{},
//		func(ctx context.Context, item int) (float64, error) { return simulate(parameters[item]) })
package workqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

// Options are how the items are handed out.
type Options struct {
	// Batch is how many items a task gets in a round. All processes meet after each, which
	// takes some 100 µs on one host: choose it so that a round takes some milliseconds at
	// least, and items of different lengths even out. If zero, 1.
	Batch int
}

// Run calls work for each of n items, on any process, and returns the results by item to all. It
// is a collective call of the world, and admits processes that replace dead ones: they call it
// as their first call, with the same arguments. work may run more than once for an item, on a
// process that dies or for one that has, and must return the same result each time. An error of
// work ends the call.
func Run[T any](ctx context.Context, w *pleach.World, n int, o Options,
	work func(ctx context.Context, item int) (T, error),
) ([]T, error) {
	results := make([]T, 0, n) // of the items before the first of the round
	for len(results) < n {
		admission, err := w.Admit(ctx) // a replacement waits here
		if err != nil {
			return nil, err
		}
		if len(admission.Joined) > 0 {
			results, err = collective.Broadcast(ctx, w, admission.Root, results,
				restore(results, slices.Contains(admission.Joined, w.Rank())))
			if err != nil {
				return nil, err
			}
		}
		results, err = round(ctx, w, results, n, max(1, o.Batch), work)
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// restore returns what every process has that was there before.
func restore[T any](results []T, isNew bool) collective.Option {
	return collective.Restore(func(context.Context, int) ([]T, error) {
		if isNew {
			return nil, errors.New("workqueue: this process has no results yet")
		}
		return results, nil
	})
}

// round adds the results of the next items, of which each task has a batch.
func round[T any](ctx context.Context, w *pleach.World, results []T, n, batch int,
	work func(context.Context, int) (T, error),
) ([]T, error) {
	first := len(results)
	batchOf := func(ctx context.Context, task int) (part []T, err error) {
		for item := first + task*batch; item < min(n, first+(task+1)*batch); item++ {
			result, err := work(ctx, item)
			if err != nil {
				return nil, fmt.Errorf("workqueue: item %d: %w", item, err)
			}
			part = append(part, result)
		}
		return part, nil
	}
	mine, err := batchOf(ctx, w.Rank())
	if err != nil {
		return nil, err
	}
	parts, err := collective.Allgather(ctx, w, mine, collective.Restore(batchOf))
	if err != nil {
		return nil, err
	}
	results = results[:len(results):len(results)] // a Restore may still need it
	for _, part := range parts {
		results = append(results, part...)
	}
	return results, nil
}
