package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// Processes that agree get one value, in which the bits of all that are alive are cleared and no
// others than those of processes, whichever processes die at which step.
func TestAgreeInAnyOrder(t *testing.T) {
	const count = 5
	for seed := range uint64(80) {
		size := 2 + int(seed%4)
		var mu sync.Mutex
		agreed := make([]map[int]uint64, count)
		w := runWorld(t, size, seed, func(w *world) { w.doom(80) }, func(c Comm) error {
			for i := range count {
				v, err := c.Agree(context.Background(), Signature{Kind: Agree, Root: NoRoot, Length: NoLength},
					^(uint64(1) << c.Rank()), 0)
				if err != nil {
					return err
				}
				mu.Lock()
				if agreed[i] == nil {
					agreed[i] = make(map[int]uint64)
				}
				agreed[i][c.Rank()] = v
				mu.Unlock()
			}
			return nil
		})
		for _, r := range w.live() {
			if w.errs[r] != nil {
				t.Fatalf("seed %d: rank %d: %v", seed, r, w.errs[r])
			}
			for i, values := range agreed {
				if v := values[r]; v&(1<<r) != 0 || v|(1<<size-1) != ^uint64(0) {
					t.Fatalf("seed %d: agreement %d is %b for rank %d", seed, i, v, r)
				}
				for other, v := range values { // also of those that have died since
					if v != values[r] {
						t.Fatalf("seed %d: agreement %d is %b for rank %d, and %b for rank %d", seed, i, values[r], r, v, other)
					}
				}
			}
		}
	}
}

// Programs that repair their communicator after a failure get the results of those that are left.
func TestRepairInAnyOrder(t *testing.T) {
	const count = 4
	for seed := range uint64(80) {
		size := 2 + int(seed%4)
		var r results
		repair := Signature{Kind: Agree, Root: NoRoot, Length: NoLength}
		w := runWorld(t, size, seed, func(w *world) { w.doom(150) }, func(c Comm) error {
			ctx := context.Background()
			for i := 0; i < count; {
				err := rounds[(int(seed)+i)%3](ctx, c, Report, i, &r)
				var failed *FailedError
				var revoked *RevokedError
				if err != nil && !errors.As(err, &failed) && !errors.As(err, &revoked) {
					return err
				}
				vote := uint64(1)
				if err != nil {
					vote = 0
					c.Revoke()
				}
				all, err := c.Agree(ctx, repair, vote, 0)
				if err != nil {
					return err
				}
				if all == 1 {
					i++
					continue
				}
				c, err = c.Shrink(ctx, Signature{Kind: Shrink, Mode: Report, Root: NoRoot, Length: NoLength}, 0)
				if err != nil {
					return err
				}
			}
			return nil
		})
		for _, rank := range w.live() {
			if w.errs[rank] != nil {
				t.Fatalf("seed %d: rank %d: %v", seed, rank, w.errs[rank])
			}
		}
		if len(r.bad) > 0 {
			t.Fatalf("seed %d: %v", seed, r.bad)
		}
	}
}

// The last agreement of a job ends although a process dies while some have decided it and some have
// not. Those that have keep the owners of tasks, so they send no messages of earlier calls to a
// new one, which runs its parts there in vain.
func TestLastAgreementInAnyOrder(t *testing.T) {
	for seed := range uint64(400) {
		size := 3 + int(seed%3)
		var r results
		w := runWorld(t, size, seed, func(w *world) { w.kills[20+w.rng.IntN(40)] = w.rng.IntN(size) }, func(c Comm) error {
			for i := range 2 {
				if err := rounds[(int(seed)+i)%3](context.Background(), c, RunThrough, i, &r); err != nil {
					return err
				}
			}
			_, err := c.Agree(context.Background(), Signature{Kind: Agree, Root: NoRoot, Length: NoLength}, 0, 0)
			c.Engine().KeepOwners()
			return err
		})
		for _, rank := range w.live() {
			if w.errs[rank] != nil {
				t.Fatalf("seed %d: rank %d: %v", seed, rank, w.errs[rank])
			}
		}
	}
}
