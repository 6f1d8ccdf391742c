package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// A process that calls something else than the others ends the call of all with the reason, in
// whichever order messages come.
func TestMismatchInAnyOrder(t *testing.T) {
	for seed := range uint64(40) {
		size, odd := 2+int(seed%3), int(seed)%2
		w := runWorld(t, size, seed, func(*world) {}, func(c Comm) error {
			var r results
			if err := exchangeAll(context.Background(), c, RunThrough, 0, &r); err != nil {
				return err
			}
			mode := RunThrough
			if c.Rank() == odd {
				mode = Report
			}
			return exchangeAll(context.Background(), c, mode, 1, &r)
		})
		for rank, err := range w.errs {
			var m *MismatchError
			if !errors.As(err, &m) || m.Call != 1 || (m.Rank == odd) == (m.Other == odd) {
				t.Fatalf("seed %d: rank %d: %v", seed, rank, err)
			}
		}
	}
}

// A call that a process does not come to ends in time everywhere, and some process names the missing
// one. A job that has such processes removed goes on without them.
func TestMissingProcessInAnyOrder(t *testing.T) {
	for seed := range uint64(20) {
		size, missing, removes := 3+int(seed%3), int(seed)%3, seed%2 == 0
		var r results
		w := runWorld(t, size, seed, func(w *world) {
			if removes {
				w.config.ProgressTimeout = time.Second
				w.config.Evict = func(rank int, why error) {
					var stuck *StuckError
					if !errors.As(why, &stuck) || stuck.Rank != missing || stuck.Arrived || stuck.Waited < time.Second || stuck.Waited > 2*time.Second {
						t.Errorf("seed %d: %v", seed, why)
					}
					w.mu.Lock()
					w.kills[w.steps+1] = rank
					w.mu.Unlock()
				}
			}
		}, func(c Comm) error {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := exchangeAll(ctx, c, RunThrough, 0, &r); err != nil || c.Rank() == missing {
				return err
			}
			return exchangeAll(ctx, c, RunThrough, 1, &r)
		})
		named := false
		for rank, err := range w.errs {
			var late *TimeoutError
			if errors.As(err, &late) {
				named = named || len(late.Missing) == 1 && late.Missing[0].Rank == missing && slices.Contains(late.Waiting, missing)
			}
			if rank != missing && (err == nil) != removes {
				t.Fatalf("seed %d: rank %d: %v", seed, rank, err)
			}
		}
		if named == removes || len(w.live()) == size == removes {
			t.Fatalf("seed %d: %v", seed, w.errs)
		}
	}
}
