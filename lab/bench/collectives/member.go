package collectives

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/lab/bench"
)

// member is one process of a [pleachRunner]. The program for Open MPI,
// openmpi/collectives.c, does the same.
type member struct{ world *pleach.World }

func newMember(ctx context.Context) (*member, error) {
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	return &member{w}, err
}

// run runs a block, and returns how long each round took here, and then the processor
// time of all.
func (m *member) run(ctx context.Context, b block) ([]int64, error) {
	var options []collective.Option
	if b.mode == modeReport {
		options = []collective.Option{collective.Report()}
	}
	operate, err := m.operation(b.testcase, options)
	if err != nil {
		return nil, err
	}
	took := make([]int64, b.rounds, b.rounds+1)
	used := bench.ProcessorTime()
	for i := range took {
		if err := collective.Barrier(ctx, m.world, options...); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := operate(ctx); err != nil {
			return nil, err
		}
		took[i] = int64(time.Since(began))
	}
	return append(took, int64(bench.ProcessorTime()-used)), nil
}

// operation makes a call of a case. Its buffers are made once: results overwrite the
// last ones, as in MPI.
func (m *member) operation(what testcase, options []collective.Option) (func(context.Context) error, error) {
	w, sum := m.world, collective.Sum[float64]()
	in := slices.Repeat([]float64{float64(w.Rank() + 1)}, what.size/8)
	into := append(slices.Clone(options), collective.Into(slices.Clone(in)))
	switch what.operation {
	case "barrier":
		return func(ctx context.Context) error { return collective.Barrier(ctx, w, options...) }, nil
	case "broadcast":
		return func(ctx context.Context) error {
			_, err := collective.Broadcast(ctx, w, 0, in, into...)
			return err
		}, nil
	case "reduce":
		return func(ctx context.Context) error {
			_, err := collective.Reduce(ctx, w, 0, in, sum, into...)
			return err
		}, nil
	case "allreduce":
		return func(ctx context.Context) error {
			_, err := collective.Allreduce(ctx, w, in, sum, into...)
			return err
		}, nil
	case "alltoall":
		parts := slices.Collect(slices.Chunk(slices.Repeat(in, w.Size()), len(in)))
		got := slices.Collect(slices.Chunk(slices.Repeat(in, w.Size()), len(in)))
		into = append(slices.Clone(options), collective.Into(got))
		return func(ctx context.Context) error {
			_, err := collective.Alltoall(ctx, w, parts, into...)
			return err
		}, nil
	case "exchange":
		parts, got := make(map[int][]float64), make(map[int][]float64)
		for _, to := range neighbors(w.Rank(), w.Size()) {
			parts[to], got[to] = in, slices.Clone(in)
		}
		options = append(slices.Clone(options), collective.Mutual(), collective.Into(got)) // MPI knows its neighbors too
		return func(ctx context.Context) error {
			_, err := collective.Exchange(ctx, w, parts, options...)
			return err
		}, nil
	case "split":
		width := gridWidth(w.Size())
		return func(ctx context.Context) error {
			_, err := w.Split(ctx, func(task int) int { return task / width })
			return err
		}, nil
	}
	return nil, fmt.Errorf("bench: %q is no collective", what.operation)
}

// gridWidth is the width of the grid of n members that is closest to a square.
func gridWidth(n int) int {
	width := 1
	for w := 1; w*w <= n; w++ {
		if n%w == 0 {
			width = w
		}
	}
	return width
}

// neighbors are those of a member on the grid, whose borders meet: to the left, to the right,
// above and below, each once.
func neighbors(rank, n int) (all []int) {
	width := gridWidth(n)
	row := rank / width * width
	for _, to := range []int{
		row + (rank+width-1)%width, row + (rank+1)%width, (rank + n - width) % n,
		(rank + width) % n,
	} {
		if to != rank && !slices.Contains(all, to) {
			all = append(all, to)
		}
	}
	return all
}
