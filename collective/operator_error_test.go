package collective

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

// An operator that fails on one process ends the call on all: none returns a result, and each error names the
// rank and the cause (case 86). The next call works.
func TestOperatorThatFails(t *testing.T) {
	const size = 6
	broken := errors.New("division by zero")
	calls := map[string]func(ctx context.Context, w Comm, op Operator[int64]) error{
		"Allreduce": func(ctx context.Context, w Comm, op Operator[int64]) error {
			return second(Allreduce(ctx, w, make([]int64, 4), op))
		},
		"long Allreduce": func(ctx context.Context, w Comm, op Operator[int64]) error {
			return second(Allreduce(ctx, w, make([]int64, 1<<15), op))
		},
		"Allreduce in parts": func(ctx context.Context, w Comm, op Operator[int64]) error {
			return second(Allreduce(ctx, w, make([]int64, 1<<19+1), op))
		},
		"Reduce": func(ctx context.Context, w Comm, op Operator[int64]) error {
			return second(Reduce(ctx, w, 2, make([]int64, 4), op))
		},
		"long Reduce": func(ctx context.Context, w Comm, op Operator[int64]) error {
			return second(Reduce(ctx, w, 2, make([]int64, 1<<16), op))
		},
		"Scan": func(ctx context.Context, w Comm, op Operator[int64]) error {
			return second(Scan(ctx, w, make([]int64, 4), op))
		},
		"Exscan": func(ctx context.Context, w Comm, op Operator[int64]) error {
			return second(Exscan(ctx, w, make([]int64, 4), op))
		},
		"ReduceScatter": func(ctx context.Context, w Comm, op Operator[int64]) error {
			return second(ReduceScatter(ctx, w, make([][]int64, w.Size()), op))
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			for odd := range size {
				if name == "Allreduce in parts" && odd > 1 {
					break // it takes long
				}
				n := newNetwork(t, size, uint64(odd))
				ctx := soon(t)
				var failed atomic.Bool
				errs := n.each(func(w Comm) error {
					return call(ctx, w, Operator[int64]{Name: "broken", Try: func(_, _, _ []int64) error {
						if w.Rank() != odd {
							return nil
						}
						failed.Store(true)
						return broken
					}})
				})
				for rank, err := range errs {
					checkOperatorError(t, rank, odd, err, failed.Load(), broken)
				}
				for rank, err := range n.each(func(w Comm) error { return Barrier(ctx, w) }) {
					if err != nil {
						t.Errorf("rank %d, after that: %v", rank, err)
					}
				}
				n.close()
			}
		})
	}
}

func second[Out any](_ Out, err error) error { return err }

// checkOperatorError checks the error of a rank in a call whose operator fails on odd, if that has combined
// anything.
func checkOperatorError(t *testing.T, rank, odd int, err error, failed bool, cause error) {
	t.Helper()
	var own *OperatorError
	var abort *AbortError
	switch {
	case !failed:
		if err != nil {
			t.Errorf("rank %d: %v, and the operator has not failed", rank, err)
		}
	case rank == odd:
		if !errors.As(err, &own) || !errors.Is(err, cause) || own.Operator != "broken" {
			t.Errorf("rank %d, whose operator has failed: %v", rank, err)
		}
	case !errors.As(err, &abort) || abort.Rank != odd || !strings.Contains(abort.Reason, cause.Error()):
		t.Errorf("rank %d: %v, and the operator of rank %d has failed", rank, err, odd)
	}
}

// An operator that can fail and does not gives the results of one that cannot, and does not match it.
func TestOperatorThatCanFail(t *testing.T) {
	n := newNetwork(t, 5, 1)
	defer n.close()
	ctx := soon(t)
	sum := Sum[int64]()
	try := Operator[int64]{Name: sum.Name, Try: func(into, left, right []int64) error {
		sum.Combine(into, left, right)
		return nil
	}}
	for rank, err := range n.each(func(w Comm) error {
		got, err := Allreduce(ctx, w, []int64{int64(w.Rank())}, try)
		if err == nil && got[0] != 10 {
			t.Errorf("rank %d has %d", w.Rank(), got[0])
		}
		return err
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	for rank, err := range n.each(func(w Comm) error {
		op := try
		if w.Rank() == 3 {
			op = sum
		}
		return second(Allreduce(ctx, w, []int64{1}, op))
	}) {
		var m *MismatchError
		if !errors.As(err, &m) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}
