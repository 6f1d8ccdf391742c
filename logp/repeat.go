package logp

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Repeat does runs 0 … n−1 and returns their results in order. The runs are
// spread over all cores; each worker makes its own run function once, so that it
// can keep simulator and machines from one run to the next. What a run does must
// depend on its number alone: then the results do not depend on the number of
// cores.
//
// progress, if not nil, is called now and then with the number of runs done,
// from any worker. The first error, or the context's, ends it.
func Repeat[R any](ctx context.Context, n int, worker func() (func(run int) (R, error), error),
	progress func(done int),
) ([]R, error) {
	results := make([]R, n)
	var next, finished atomic.Int64
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	work := func() error {
		run, err := worker()
		if err != nil {
			return err
		}
		for {
			i := int(next.Add(1)) - 1
			if i >= n || ctx.Err() != nil {
				return nil
			}
			results[i], err = run(i)
			if err != nil {
				return err
			}
			if done := finished.Add(1); progress != nil {
				progress(int(done))
			}
		}
	}
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			if err := work(); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return results[:0], context.Cause(ctx)
	}
	return results, nil
}
