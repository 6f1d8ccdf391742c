package collective

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

// Each process that runs f dies in it, but the last one: f has returned there when Once
// returns on the others.
func TestOnceOutlivesWriters(t *testing.T) {
	for size := 2; size <= 6; size++ {
		for victims := range size {
			t.Run(fmt.Sprint(size, victims), func(t *testing.T) {
				n := newNetwork(t, size, uint64(size*10+victims))
				defer n.close()
				ctx := soon(t)
				var began, returned atomic.Int32
				errs := n.each(func(w Comm) error {
					err := Once(ctx, w, func(context.Context) error {
						if int(began.Add(1)) <= victims {
							n.doom(map[int]int{w.Rank(): 0})
							return errKilled
						}
						returned.Add(1)
						return nil
					})
					if err == nil && returned.Load() != 1 {
						return fmt.Errorf("f has returned %d times", returned.Load())
					}
					return err
				})
				n.mu.Lock()
				defer n.mu.Unlock()
				for r, err := range errs {
					if err != nil && !n.dead[r] {
						t.Errorf("rank %d: %v", r, err)
					}
				}
				if int(began.Load()) != victims+1 {
					t.Errorf("f has begun %d times", began.Load())
				}
			})
		}
	}
}

// An error of f ends the call on all processes.
func TestOnceFails(t *testing.T) {
	n := newNetwork(t, 4, 1)
	defer n.close()
	full, ctx := errors.New("the disk is full"), soon(t)
	for r, err := range n.each(func(w Comm) error {
		return Once(ctx, w, func(context.Context) error { return full })
	}) {
		var a *AbortError
		if r == 0 && !errors.Is(err, full) || r > 0 && (!errors.As(err, &a) || a.Reason != full.Error()) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
