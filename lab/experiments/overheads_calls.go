package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

// preparedCall is a case whose input is made. Check says whether the last result of
// the call was right.
type preparedCall struct {
	call  func(context.Context) error
	check func() error
}

// prepare makes the input.
func (e testcase) prepare(w *pleach.World) (preparedCall, error) {
	length, size, rank := e.Bytes/4, w.Size(), w.Rank()
	block := func(from, to int) []int32 { return slices.Repeat([]int32{int32(from*size + to)}, length) }
	blocks := func(of func(task int) []int32) (all [][]int32) {
		for task := range size {
			all = append(all, of(task))
		}
		return all
	}
	one := func(task int) []int32 { return block(task, 0) }
	toAll := func(task int) [][]int32 { return blocks(func(to int) []int32 { return block(task, to) }) }
	toMe := func(from int) []int32 { return block(from, rank) }
	switch e.Call {
	case "broadcast":
		return prepareCall(e, one, one(0), one(0), true,
			func(ctx context.Context, in []int32, o collective.Option) ([]int32, error) {
				return collective.Broadcast(ctx, w, 0, in, o)
			}), nil
	case "scatter":
		return prepareCall(e, toAll, toAll(0), block(0, rank), true,
			func(ctx context.Context, in [][]int32, o collective.Option) ([]int32, error) {
				return collective.Scatter(ctx, w, 0, in, o)
			}), nil
	case "gather":
		return prepareCall(e, one, one(rank), slices.Concat(blocks(one)...), rank == 0,
			func(ctx context.Context, in []int32, o collective.Option) ([]int32, error) {
				got, err := collective.Gather(ctx, w, 0, in, o)
				return slices.Concat(got...), err
			}), nil
	case "reduce":
		sum := slices.Repeat([]int32{int32(size * size * (size - 1) / 2)}, length)
		return prepareCall(e, one, one(rank), sum, rank == 0,
			func(ctx context.Context, in []int32, o collective.Option) ([]int32, error) {
				return collective.Reduce(ctx, w, 0, in, collective.Sum[int32](), o)
			}), nil
	case "alltoall":
		return prepareCall(e, toAll, toAll(rank), slices.Concat(blocks(toMe)...), true,
			func(ctx context.Context, in [][]int32, o collective.Option) ([]int32, error) {
				got, err := collective.Alltoall(ctx, w, in, o)
				return slices.Concat(got...), err
			}), nil
	}
	return preparedCall{}, fmt.Errorf("experiments: no collective %q", e.Call)
}

// prepareCall prepares a collective. Input restores a task's input; mine is that of
// this process. Always says that every process gets a result.
func prepareCall[In any](e testcase, input func(task int) In, mine In, want []int32, always bool,
	call func(context.Context, In, collective.Option) ([]int32, error),
) preparedCall {
	mode := collective.Report()
	if !e.Report {
		mode = collective.Restore(func(_ context.Context, task int) (In, error) { return input(task), nil })
	}
	var got []int32
	return preparedCall{
		call: func(ctx context.Context) (err error) {
			got, err = call(ctx, mine, mode)
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
