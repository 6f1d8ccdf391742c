package collective

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// Calls that do not match are an error on all processes, which names both calls.
func TestMismatch(t *testing.T) {
	for name, odd := range map[string]func(ctx context.Context, w Comm) error{
		"kind": func(ctx context.Context, w Comm) error { return Barrier(ctx, w) },
		"length": func(ctx context.Context, w Comm) error {
			_, err := Allreduce(ctx, w, []int64{1, 2, 3}, Sum[int64]())
			return err
		},
		"type": func(ctx context.Context, w Comm) error {
			_, err := Allreduce(ctx, w, []float64{1, 2}, Sum[float64]())
			return err
		},
		"operator": func(ctx context.Context, w Comm) error {
			_, err := Allreduce(ctx, w, []int64{1, 2}, Max[int64]())
			return err
		},
		"failure mode": func(ctx context.Context, w Comm) error {
			_, err := Allreduce(ctx, w, []int64{1, 2}, Sum[int64](), Report())
			return err
		},
		"agree": func(ctx context.Context, w Comm) error {
			_, err := Agree(ctx, w, 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, 6, 1)
			defer n.close()
			ctx := soon(t)
			for r, err := range n.each(func(w Comm) error {
				if w.Rank() == 4 {
					return odd(ctx, w)
				}
				_, err := Allreduce(ctx, w, []int64{1, 2}, Sum[int64]())
				return err
			}) {
				var m *MismatchError
				if !errors.As(err, &m) {
					t.Errorf("rank %d: %v", r, err)
				} else if m.Rank != 4 && m.Other != 4 || m.What == m.OtherWhat {
					t.Errorf("rank %d: the error does not name rank 4: %v", r, err)
				}
			}
			// The next call matches again.
			for r, err := range n.each(func(w Comm) error { return Barrier(ctx, w) }) {
				if err != nil {
					t.Errorf("rank %d, after that: %v", r, err)
				}
			}
		})
	}
}

// A call past its deadline names the missing processes and their last calls.
func TestLate(t *testing.T) {
	n := newNetwork(t, 8, 1)
	defer n.close()
	long := soon(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for r, err := range n.each(func(w Comm) error {
		if err := Barrier(long, w); err != nil || w.Rank() == 3 {
			return err
		}
		_, err := Allreduce(ctx, w, []int{w.Rank()}, Sum[int]())
		return err
	}) {
		if r == 3 {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		var l *TimeoutError
		var a *AbortError
		switch {
		case errors.As(err, &a): // another one's deadline came first
			if !strings.Contains(a.Reason, "rank 3 (its call 0 was the last, Barrier)") {
				t.Errorf("rank %d: %v", r, err)
			}
		case !errors.As(err, &l) || !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("rank %d: %v", r, err)
		case !slices.Contains(l.Missing, Missing{Rank: 3, Calls: 1, Last: "Barrier"}):
			t.Errorf("rank %d: absent are %v: %v", r, l.Missing, err)
		}
	}
}

// Report ends a call with the ranks that have failed, before or during it.
func TestReport(t *testing.T) {
	for at := range 8 {
		n := newNetwork(t, 4, uint64(at))
		n.doom(map[int]int{2: at + 1})
		ctx := soon(t)
		errs := n.each(func(w Comm) error {
			for {
				if err := Barrier(ctx, w, Report()); err != nil {
					return err
				}
			}
		})
		for r, err := range errs {
			var f *FailedError
			if r != 2 && (!errors.As(err, &f) || !slices.Equal(f.Ranks, []int{2}) || f.View != 2) {
				t.Errorf("killed at %d: rank %d: %v", at, r, err)
			}
		}
		n.close()
	}
}

// A call whose inputs cannot be brought back fails on all, and says why.
func TestNoRestore(t *testing.T) {
	lost := errors.New("the disk is gone")
	for name, options := range map[string][]Option{
		ErrNoRestore.Error(): nil,
		lost.Error():         {Restore(func(context.Context, int) ([]int, error) { return nil, lost })},
		"2 elements":         {Restore(func(context.Context, int) ([]int, error) { return []int{1, 2}, nil })},
	} {
		n := newNetwork(t, 4, 1)
		n.doom(map[int]int{1: 1})
		ctx := soon(t)
		for r, err := range n.each(func(w Comm) error {
			_, err := Allreduce(ctx, w, []int{1}, Sum[int](), options...)
			return err
		}) {
			if r != 1 && (err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "task 1")) {
				t.Errorf("%s: rank %d: %v", name, r, err)
			}
		}
		n.close()
	}
}

func TestWrongArguments(t *testing.T) {
	n := newNetwork(t, 2, 1)
	defer n.close()
	w, ctx := Comm(n.engines[0].Comm()), soon(t)
	for name, call := range map[string]func() error{
		"root 2: choose 0 to 1": func() error { _, err := Broadcast(ctx, w, 2, []int{1}); return err },
		"1 parts for 2 tasks":   func() error { _, err := Alltoall(ctx, w, [][]int{{1}}); return err },
		"this call needs func(context.Context, int) ([]int, error)": func() error {
			_, err := Allreduce(ctx, w, []int{1}, Sum[int](),
				Restore(func(context.Context, int) ([]string, error) { return nil, nil }))
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A process that is ahead waits for the slowest, and the log is trimmed.
func TestKeptIsBounded(t *testing.T) {
	n := newNetworkOf(t, 3, 1, engine.Config{KeepCalls: 4})
	defer n.close()
	ctx := soon(t)
	for r, err := range n.each(func(w Comm) error {
		for i := range 50 {
			if w.Rank() == 2 && i%10 == 0 {
				time.Sleep(2 * time.Millisecond)
			}
			// Nothing comes back to the root by itself.
			if _, err := Broadcast(ctx, w, 0, []int{i}); err != nil {
				return err
			}
			if ahead := core(w).LoggedCalls(); ahead > 5 {
				return fmt.Errorf("%d calls ahead", ahead)
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func FuzzBlocks(f *testing.F) {
	f.Add(appendBlock(appendBlock(nil, 1, []byte("abc")), 0, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		blocks, err := cutBlocks(b, 4)
		if err != nil {
			return
		}
		for task, block := range blocks {
			if block == nil {
				continue
			}
			again, err := cutBlocks(appendBlock(nil, task, block), 4)
			if err != nil || string(again[task]) != string(block) {
				t.Fatalf("%q came back as %q: %v", block, again, err)
			}
		}
	})
}

// Calls that are reserved in the same order may be made in any, beside each other.
func TestReserve(t *testing.T) {
	n := newNetwork(t, 5, 1)
	defer n.close()
	ctx := soon(t)
	for r, err := range n.each(func(w Comm) error {
		calls := []Comm{w.Reserve(), w.Reserve(), w.Reserve()}
		sums, errs := make([][]int, 3), make([]error, 3)
		var all sync.WaitGroup
		for i := range calls {
			i = (i + w.Rank()) % 3
			all.Go(func() { sums[i], errs[i] = Allreduce(ctx, calls[i], []int{i}, Sum[int]()) })
		}
		all.Wait()
		for i, sum := range sums {
			if errs[i] != nil || sum[0] != 5*i {
				return fmt.Errorf("call %d: %v, %w", i, sum, errs[i])
			}
		}
		if Barrier(ctx, calls[0]) == nil {
			return errors.New("a reserved call was made twice")
		}
		return Barrier(ctx, w)
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// In a derived communicator an error says which ranks of the world it means.
func TestErrorsNameRanksOfTheWorld(t *testing.T) {
	n := newNetwork(t, 4, 1)
	defer n.close()
	n.doom(map[int]int{0: 0})
	ctx := soon(t)
	for r, err := range n.each(func(w Comm) error {
		sub, err := w.Shrink(ctx)
		if err != nil || sub.Rank() == 1 {
			return err
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		return Barrier(short, sub)
	}) {
		late := r == 1 || r == 3
		if late && (err == nil || !strings.Contains(err.Error(), "1 is rank 2 of the world")) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
