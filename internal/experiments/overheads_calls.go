package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

// act is an exercise whose input is made already: check says whether the call's
// last result was right.
type act struct {
	call  func(context.Context) error
	check func() error
}

// prepare makes the input.
func (e exercise) prepare(w *pleach.World) (act, error) {
	length, size, rank := e.Bytes/4, w.Size(), w.Rank()
	letter := func(from, to int) []int32 { return slices.Repeat([]int32{int32(from*size + to)}, length) }
	letters := func(of func(task int) []int32) (all [][]int32) {
		for task := range size {
			all = append(all, of(task))
		}
		return all
	}
	one := func(task int) []int32 { return letter(task, 0) }
	toAll := func(task int) [][]int32 { return letters(func(to int) []int32 { return letter(task, to) }) }
	toMe := func(from int) []int32 { return letter(from, rank) }
	switch e.Call {
	case "broadcast":
		return actOf(e, one, one(0), one(0), true, func(ctx context.Context, in []int32, o collective.Option) ([]int32, error) {
			return collective.Broadcast(ctx, w, 0, in, o)
		}), nil
	case "scatter":
		return actOf(e, toAll, toAll(0), letter(0, rank), true, func(ctx context.Context, in [][]int32, o collective.Option) ([]int32, error) {
			return collective.Scatter(ctx, w, 0, in, o)
		}), nil
	case "gather":
		return actOf(e, one, one(rank), slices.Concat(letters(one)...), rank == 0, func(ctx context.Context, in []int32, o collective.Option) ([]int32, error) {
			got, err := collective.Gather(ctx, w, 0, in, o)
			return slices.Concat(got...), err
		}), nil
	case "reduce":
		sum := slices.Repeat([]int32{int32(size * size * (size - 1) / 2)}, length)
		return actOf(e, one, one(rank), sum, rank == 0, func(ctx context.Context, in []int32, o collective.Option) ([]int32, error) {
			return collective.Reduce(ctx, w, 0, in, collective.Sum[int32](), o)
		}), nil
	case "alltoall":
		return actOf(e, toAll, toAll(rank), slices.Concat(letters(toMe)...), true, func(ctx context.Context, in [][]int32, o collective.Option) ([]int32, error) {
			got, err := collective.Alltoall(ctx, w, in, o)
			return slices.Concat(got...), err
		}), nil
	}
	return act{}, fmt.Errorf("experiments: no collective %q", e.Call)
}

// actOf makes an act of a collective. Input brings a task's input back; mine is
// this process's. Its result must be right; of some collectives most processes get
// none.
func actOf[In any](e exercise, input func(task int) In, mine In, want []int32, always bool,
	call func(context.Context, In, collective.Option) ([]int32, error),
) act {
	strength := collective.Report()
	if !e.Plain {
		strength = collective.Restore(func(_ context.Context, task int) (In, error) { return input(task), nil })
	}
	var got []int32
	return act{
		call: func(ctx context.Context) (err error) {
			got, err = call(ctx, mine, strength)
			return err
		},
		check: func() error {
			if (always || len(got) > 0) && !slices.Equal(got, want) {
				return fmt.Errorf("experiments: %s: wrong result: %d elements, %d expected", e.Call, len(got), len(want))
			}
			return nil
		},
	}
}
