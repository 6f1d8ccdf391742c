package restart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/lab/bench"
)

// workload is what the processes of a job do.
type workload struct {
	Rounds, Elements int
	Compute          time.Duration
	Serial           bool
	Every            int
	Checkpoint       string // the file; "": none is written
}

// lineReady is what a worker reports before its result.
const lineReady = "ready"

// worker is a process of the job.
type worker struct {
	workload
	world *pleach.World
	mu    sync.Mutex
	done  map[[2]int][]float64 // what tasks have computed, by round and task
}

// snapshot is what a checkpoint holds.
type snapshot struct {
	Round int
	State []float64
}

// Serve is a process that [Run] starts. It computes and adds up, round by round, and
// reports the result.
func Serve(ctx context.Context, load string) error {
	w := &worker{done: make(map[[2]int][]float64)}
	if err := json.Unmarshal([]byte(load), &w.workload); err != nil {
		return fmt.Errorf("bench: workload: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // nothing comes but its end
		cancel()
	}()
	report := bench.InheritedPipe()
	at, err := w.load()
	if err != nil {
		return err
	}
	w.world, err = pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	if err := collective.Barrier(ctx, w.world); err != nil {
		return err
	}
	fmt.Fprintln(report, lineReady)
	for ; at.Round < w.Rounds; at.Round++ {
		if err := w.round(ctx, &at); err != nil {
			return err
		}
	}
	fmt.Fprintf(report, "%x\n", digest(at.State))
	return w.world.Finalize(ctx)
}

// round computes, adds up, and writes a checkpoint if one is due.
func (w *worker) round(ctx context.Context, at *snapshot) error {
	round := at.Round
	tasks := w.world.Tasks()
	var computing sync.WaitGroup
	for _, task := range tasks {
		if w.Serial {
			w.keep(round, task, w.compute(task, round))
			continue
		}
		computing.Go(func() { w.keep(round, task, w.compute(task, round)) })
	}
	computing.Wait()
	sum, err := collective.Allreduce(ctx, w.world, w.input(w.world.Rank(), round), collective.Sum[float64](),
		collective.Restore(func(_ context.Context, task int) ([]float64, error) { return w.input(task, round), nil }))
	if err != nil {
		return err
	}
	for i, v := range sum {
		at.State[i] += v
	}
	w.forget(round)
	if w.Checkpoint != "" && (round+1)%w.Every == 0 && w.world.Owner(0) == w.world.Rank() {
		return w.save(snapshot{round + 1, at.State})
	}
	return nil
}

// compute takes its time, as on a processor of the task's own.
func (w *worker) compute(task, round int) []float64 {
	time.Sleep(w.Compute)
	out := make([]float64, w.Elements)
	for i := range out {
		out[i] = 1 / float64(1+task+round*7+i)
	}
	return out
}

// input is what a task gives, computed now if it has not been: its process may
// have died a moment ago.
func (w *worker) input(task, round int) []float64 {
	w.mu.Lock()
	in, ok := w.done[[2]int{round, task}]
	w.mu.Unlock()
	if !ok {
		in = w.compute(task, round)
	}
	return in
}

func (w *worker) keep(round, task int, in []float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[[2]int{round, task}] = in
}

// forget drops what was computed for a round. What is still needed is computed
// again.
func (w *worker) forget(round int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.done {
		if key[0] <= round {
			delete(w.done, key)
		}
	}
}

// load reads the last checkpoint, if there is one.
func (w *worker) load() (at snapshot, err error) {
	at.State = make([]float64, w.Elements)
	if w.Checkpoint == "" {
		return at, nil
	}
	b, err := os.ReadFile(w.Checkpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return at, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &at)
	}
	return at, err
}

// save writes a checkpoint so that it is there as a whole, or the one before is.
func (w *worker) save(s snapshot) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	next := w.Checkpoint + ".next"
	if err := os.WriteFile(next, b, 0o600); err != nil {
		return err
	}
	return os.Rename(next, w.Checkpoint)
}

// digest tells results apart.
func digest(state []float64) uint64 {
	h := fnv.New64a()
	for _, v := range state {
		fmt.Fprintf(h, "%x ", math.Float64bits(v))
	}
	return h.Sum64()
}
