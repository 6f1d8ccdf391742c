// Allreduce estimates π with as many processes as it is started with, and ends
// with the same digits although some of them are killed:
//
//	go build -o pi ./examples/allreduce
//	pleach run -n 8 --kill 0@1s --kill 3@2s ./pi
//
// Each task draws points from a seed of its own, so that a survivor that takes over
// the task of a dead process can draw them again.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

const (
	rounds = 20
	points = 2_000_000 // of a task, in a round
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	var inside int64
	for round := range rounds {
		hits, err := collective.Allreduce(ctx, w, draw(w.Rank(), round), collective.Sum[int64](),
			collective.Restore(func(_ context.Context, task int) ([]int64, error) { return draw(task, round), nil }))
		if err != nil {
			return err
		}
		inside += hits[0]
		if w.Rank() == w.Owner(0) { // a line that may get lost with its process
			fmt.Printf("round %2d, %d of %d processes\n", round, w.View().Size(), w.Size())
		}
	}
	err = collective.Once(ctx, w, func(context.Context) error { // the result must not
		_, err := fmt.Printf("π ≈ %.6f\n", 4*float64(inside)/(rounds*points*float64(w.Size())))
		return err
	})
	if err != nil {
		return err
	}
	return w.Finalize(ctx)
}

// draw counts a task's points that fall into the circle.
func draw(task, round int) []int64 {
	rng := rand.New(rand.NewPCG(uint64(task), uint64(round)))
	var inside int64
	for range points {
		if x, y := rng.Float64(), rng.Float64(); x*x+y*y < 1 {
			inside++
		}
	}
	return []int64{inside}
}
