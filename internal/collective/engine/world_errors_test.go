package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
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
					if !errors.As(why, &stuck) || stuck.Rank != missing || stuck.Arrived || stuck.Waited < time.Second ||
						stuck.Waited > 2*time.Second {
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

// A call that fails on a process which then dies ends on all survivors, even if that process has told only some of
// them, in whichever order messages come. The next call works.
func TestFailureOfADeadProcessInAnyOrder(t *testing.T) {
	failed := errors.New("the operator failed")
	told := 0 // runs in which a survivor has learned of the failure
	for seed := range uint64(80) {
		size := 3 + int(seed%3)
		odd := int(seed) % size
		var r results
		var aborts atomic.Int32
		w := runWorld(t, size, seed, func(w *world) { w.kills[10+w.rng.IntN(40)] = odd }, func(c Comm) error {
			s := Signature{Kind: Allreduce, Mode: RunThrough, Root: NoRoot, Length: 1, Element: 11}
			err := c.Do(context.Background(), s, func(t *Task) error {
				if err := meetAt(t, 0); err != nil {
					return err
				}
				if t.Own() && t.ID == odd {
					return failed
				}
				return meetAt(t, 1)
			})
			var a *AbortError
			switch {
			case errors.As(err, &a) && a.Rank == odd && a.Reason == failed.Error():
				aborts.Add(1)
			case err != nil && c.Rank() != odd:
				return err
			}
			return exchangeAll(context.Background(), c, RunThrough, 1, &r)
		})
		for _, rank := range w.live() {
			if w.errs[rank] != nil {
				t.Errorf("rank %d: %v", rank, w.errs[rank])
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		told += int(min(1, aborts.Load()))
	}
	if told < 10 {
		t.Errorf("the survivors learned of the failure in %d runs only", told)
	}
}

// meetAt has all tasks wait for each other.
func meetAt(t *Task, step int) error {
	for task := range t.N {
		if err := t.Send(task, step, nil); err != nil {
			return err
		}
	}
	for task := range t.N {
		p, err := t.ReceivePayload(task, step)
		if err != nil {
			return err
		}
		p.Release()
	}
	return nil
}
