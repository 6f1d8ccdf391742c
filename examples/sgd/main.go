// Sgd trains a linear model by data-parallel stochastic gradient descent. A process that
// is killed is restarted and taken in again, without a restart of the others, and the
// model is the same to the last bit as without:
//
//	go build -o sgd ./examples/sgd
//	pleach run -n 6 --respawn --kill 2@1s ./sgd
//
// Between a death and the next Admit a survivor computes the dead process's share. From
// Admit on the replacement does, and a step takes as long as before.
package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/checkpoint"
	"github.com/pleach-go/pleach/collective"
)

const (
	steps   = 600
	report  = 100  // steps between two lines of output
	weights = 1024 // of the model
	samples = 512  // of a task, in a step
	rate    = 0.5
)

func main() {
	if err := run(context.Background()); err != nil && !errors.Is(err, pleach.ErrJobEnded) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	step, model := 0, make([]float64, weights)
	if err := resume(ctx, w, &step, &model); err != nil {
		return err
	}
	measured, since := step, time.Now()
	for step < steps {
		admission, err := w.Admit(ctx) // a replacement waits here
		if err != nil {
			return err
		}
		if len(admission.Joined) > 0 {
			step, model, err = share(ctx, w, admission, step, model)
			if err != nil {
				return err
			}
			measured, since = step, time.Now()
		}
		model, err = descend(ctx, w, step, model)
		if err != nil {
			return err
		}
		step++
		if step%report == 0 {
			if w.Rank() == w.Owner(0) {
				fmt.Printf("step %d: error %.6f, %v a step, tasks that have moved: %v\n",
					step, distance(model), (time.Since(since) / time.Duration(step-measured)).Round(10*time.Microsecond), moved(w))
			}
			if err := save(ctx, w, step, model); err != nil {
				return err
			}
			measured, since = step, time.Now()
		}
	}
	err = collective.Once(ctx, w, func(context.Context) error {
		_, err := fmt.Printf("model %016x after %d steps\n", checksum(model), step)
		return err
	})
	if err != nil {
		return err
	}
	return w.Finalize(ctx)
}

// state is what a checkpoint has.
type state struct {
	Step  int
	Model []float64
}

// resume begins where a job ended of which all processes have died, if SGD_CHECKPOINT names its
// file. A replacement gets the state from the others.
func resume(ctx context.Context, w *pleach.World, step *int, model *[]float64) error {
	name := os.Getenv("SGD_CHECKPOINT")
	if name == "" || w.Respawned() {
		return nil
	}
	s := state{*step, *model}
	_, err := checkpoint.Load(ctx, w, name, &s)
	*step, *model = s.Step, s.Model
	return err
}

func save(ctx context.Context, w *pleach.World, step int, model []float64) error {
	name := os.Getenv("SGD_CHECKPOINT")
	if name == "" {
		return nil
	}
	return checkpoint.Save(ctx, w, name, state{step, model})
}

// share hands the state to the processes that were taken in.
func share(ctx context.Context, w *pleach.World, a pleach.Admission, step int,
	model []float64,
) (int, []float64, error) {
	state := append([]float64{float64(step)}, model...)
	isNew := slices.Contains(a.Joined, w.Rank())
	state, err := collective.Broadcast(ctx, w, a.Root, state,
		collective.Restore(func(context.Context, int) ([]float64, error) {
			if isNew {
				return nil, errors.New("this process has no state yet")
			}
			return state, nil
		}))
	if err != nil {
		return 0, nil, err
	}
	if isNew {
		fmt.Printf("rank %d is back at step %.0f, with tasks %v\n", w.Rank(), state[0], w.Tasks())
	}
	return int(state[0]), state[1:], nil
}

// descend returns the model after one more step. It leaves the model as it is, because a
// task of a process that dies is recomputed from it.
func descend(ctx context.Context, w *pleach.World, step int, model []float64) ([]float64, error) {
	sum, err := collective.Allreduce(ctx, w, gradient(w.Rank(), step, model), collective.Sum[float64](),
		collective.Restore(func(_ context.Context, task int) ([]float64, error) { return gradient(task, step, model), nil }))
	if err != nil {
		return nil, err
	}
	next := slices.Clone(model)
	for i := range next {
		next[i] -= rate * sum[i] / float64(samples*w.Size())
	}
	return next, nil
}

// gradient is that of a task's samples in a step, which are drawn from a seed of their own.
// A sample has a few inputs that are not zero.
func gradient(task, step int, model []float64) []float64 {
	rng := rand.New(rand.NewPCG(uint64(task), uint64(step)))
	g := make([]float64, weights)
	var inputs [16]int
	for range samples {
		off := 0.0
		for i := range inputs {
			inputs[i] = rng.IntN(weights)
			off += model[inputs[i]] - truth(inputs[i])
		}
		for _, i := range inputs {
			g[i] += off
		}
	}
	return g
}

// truth is the model to be found.
func truth(i int) float64 { return math.Sin(float64(i)) }

// distance is how far the model is from the truth.
func distance(model []float64) (sum float64) {
	for i, m := range model {
		sum += (m - truth(i)) * (m - truth(i))
	}
	return math.Sqrt(sum / weights)
}

// moved returns the tasks that another process runs than the one of their rank.
func moved(w *pleach.World) (tasks []int) {
	for task := range w.Size() {
		if w.Owner(task) != task {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// checksum tells models apart by their bits.
func checksum(model []float64) uint64 {
	h := fnv.New64a()
	for _, m := range model {
		fmt.Fprintf(h, "%x", math.Float64bits(m))
	}
	return h.Sum64()
}
