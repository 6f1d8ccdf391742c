package collective

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// stepping is a program of many steps whose state depends on all of them. Each step admits
// replacements and gives them the state.
type stepping struct {
	steps   int
	before  func(w Comm, step int)       // is called before each Admit
	stepped func(w Comm, step, join int) // is called after each step
}

// gradient is what a task adds in a step.
func gradient(task, step int, sum int64) int64 {
	return (int64(task)+1)*int64(step+1) + sum%int64(task+7)
}

// want is the state after all steps, without failures.
func (p *stepping) want(size int) (sum int64) {
	for step := range p.steps {
		var add int64
		for task := range size {
			add += gradient(task, step, sum)
		}
		sum += add
	}
	return sum
}

func (p *stepping) run(ctx context.Context, w Comm) (sum int64, err error) {
	own := w // by which the test knows the process
	state := []int64{0, 0}
	for state[0] < int64(p.steps) {
		p.before(own, int(state[0]))
		next, err := w.Admit(ctx)
		if err != nil {
			return 0, fmt.Errorf("Admit at step %d: %w", state[0], err)
		}
		joined := 0
		if core(next).Engine() != core(w).Engine() {
			new, root := core(next).Engine().Admission()
			w, joined = next, len(new)
			has, newcomer := slices.Clone(state), slices.Contains(new, w.Rank())
			state, err = Broadcast(ctx, w, root, state, Restore(func(context.Context, int) ([]int64, error) {
				if newcomer {
					return nil, errors.New("a newcomer has no state")
				}
				return has, nil
			}))
			if err != nil {
				return 0, fmt.Errorf("Broadcast at step %d: %w", has[0], err)
			}
		}
		step, sum := int(state[0]), state[1]
		all, err := Allreduce(ctx, w, []int64{gradient(w.Rank(), step, sum)}, Sum[int64](),
			Restore(func(_ context.Context, task int) ([]int64, error) {
				return []int64{gradient(task, step, sum)}, nil
			}))
		if err != nil {
			return 0, fmt.Errorf("Allreduce at step %d: %w", step, err)
		}
		state = []int64{int64(step) + 1, sum + all[0]}
		p.stepped(w, step, joined)
	}
	if _, err := Agree(ctx, w, 0); err != nil {
		return 0, fmt.Errorf("Agree at the end: %w", err)
	}
	last := core(w).Engine()
	last.KeepOwners()
	last.DismissWaiting()
	return state[1], last.Flush(ctx)
}

// A process that dies is replaced, owns its task again, and no process has two.
func TestAdmit(t *testing.T) {
	for name, hold := range map[string]bool{"": false, "while calls are held": true} {
		t.Run(name, func(t *testing.T) { testAdmit(t, hold) })
	}
}

func testAdmit(t *testing.T, hold bool) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const size, dies, at = 5, 2, 4
	n := newNetwork(t, size, 1)
	defer n.close()
	var admitted atomic.Int32
	replaced := make(chan struct{})
	p := stepping{steps: 12}
	p.before = func(w Comm, step int) {
		switch {
		case step == at-1 && hold:
			w.Hold()
		case step == at && w.Rank() == dies:
			n.doom(map[int]int{dies: 0})
		case step == at+2 && w.Rank() == 0: // it is not to be missed
			select {
			case <-replaced:
			case <-ctx.Done():
			}
		}
	}
	p.stepped = func(w Comm, step, joined int) {
		admitted.Add(int32(joined))
		if step < p.steps-1 {
			return
		}
		for task := range size {
			if owner := w.Owner(task); owner != task {
				t.Errorf("rank %d: task %d belongs to rank %d", w.Rank(), task, owner)
			}
		}
		if tasks := w.Tasks(); !slices.Equal(tasks, []int{w.Rank()}) || len(w.Failed()) > 0 {
			t.Errorf("rank %d: tasks %v, failed %v", w.Rank(), tasks, w.Failed())
		}
	}
	n.program = func(w Comm) error {
		if err := Barrier(ctx, w); !errors.Is(err, engine.ErrNotAdmitted) || len(w.Tasks()) > 0 {
			t.Errorf("before it is admitted: %v, tasks %v", err, w.Tasks())
		}
		close(replaced)
		sum, err := p.run(ctx, w)
		if want := p.want(size); err == nil && sum != want {
			t.Errorf("the replacement has %d, want %d", sum, want)
		}
		return err
	}
	for r, err := range n.each(func(w Comm) error {
		sum, err := p.run(ctx, w)
		if want := p.want(size); err == nil && sum != want {
			t.Errorf("rank %d: %d, want %d", w.Rank(), sum, want)
		}
		return err
	}) {
		if err != nil && r != dies {
			t.Error(err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := errors.Join(n.errs...); err != nil || admitted.Load() != size {
		t.Errorf("%d processes saw an admission; %v", admitted.Load(), err)
	}
}

// Processes die at any time, their replacements, too, and those that are left have the
// result of an undisturbed job.
func TestAdmitUnderDeaths(t *testing.T) {
	trials := uint64(60)
	if testutil.Full.On() {
		trials = 5_000
	}
	for seed := range trials {
		if err := admitUnderDeaths(t, seed); err != nil {
			t.Errorf("seed %d: %v", seed, err)
			return
		}
	}
}

func admitUnderDeaths(t *testing.T, seed uint64) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	rng := rand.New(rand.NewPCG(seed, 11))
	size := 2 + rng.IntN(5)
	keeper := rng.IntN(size) // lives, so that the state is not lost
	n := newNetworkOf(t, size, seed, engineConfig(false))
	defer n.close()
	p := stepping{steps: 10, before: func(Comm, int) {}, stepped: func(Comm, int, int) {}}
	check := func(w Comm) error {
		sum, err := p.run(ctx, w)
		if want := p.want(size); err == nil && sum != want {
			err = fmt.Errorf("rank %d: %d, want %d", w.Rank(), sum, want)
		}
		return err
	}
	again := rng.IntN(4) // so many replacements die, too
	replacements := 0
	n.program = func(w Comm) error {
		n.mu.Lock()
		replacements++
		if replacements <= again && w.Rank() != keeper {
			n.killAt[w.Rank()] = n.events[w.Rank()] + 1 + n.rng.IntN(60)
		}
		n.mu.Unlock()
		if err := check(w); err != nil && !errors.Is(err, engine.ErrJobEnded) {
			return err
		}
		return nil
	}
	kills := make(map[int]int)
	together := rng.IntN(120)
	for range 1 + rng.IntN(size) {
		if rank := rng.IntN(size); rank != keeper {
			kills[rank] = together + rng.IntN(2)*rng.IntN(100)
		}
	}
	n.doom(kills)
	errs := n.each(check)
	cancelled := ctx.Err()
	cancel() // replacements that came too late
	n.mu.Lock()
	defer n.mu.Unlock()
	for r, err := range errs {
		if err != nil && n.incarnations[r] == 1 && !n.dead[r] {
			return fmt.Errorf("rank %d: %w (kills %v, timeout %v)", r, err, kills, cancelled)
		}
	}
	for _, err := range n.errs {
		if !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return nil
}
