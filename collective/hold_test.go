package collective

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// heldWork is how long a process works between two calls: longer than a call may take
// before the engine asks for progress, and trims what is not held.
const heldWork = 60 * time.Millisecond

// heldTrial is a run of chains of calls, each of which needs the result of the one before:
// Alltoall, work, Alltoall, Allreduce. Each chain has a hold of its own.
type heldTrial struct {
	size    int
	kills   map[int]int
	seed    uint64
	without bool // it does not hold

	network  *network
	programs []*heldProgram
}

// heldProgram is the program of one process, and the results that it has of tasks.
type heldProgram struct {
	trial    *heldTrial
	comm     Comm
	mu       sync.Mutex
	results  map[[2]int]chan any // by call and task
	released int                 // chains
}

// chains is how many follow each other, and chainCalls how many calls one has: the last is a
// Barrier.
const (
	chains     = 2
	chainCalls = 4
)

// scattered is the input of the first call.
func scattered(task, size int) [][]int64 {
	parts := make([][]int64, size)
	for to := range parts {
		for k := range 1 + (task+to)%3 {
			parts[to] = append(parts[to], int64(1+task*100+to*10+k))
		}
	}
	return parts
}

// mixed is what the work makes of the first call's result: the input of the second.
func mixed(task int, got [][]int64) [][]int64 {
	parts := make([][]int64, len(got))
	for to := range parts {
		for from, part := range got {
			parts[to] = append(parts[to], int64(task)+part[0]*int64(to+1)<<(from%7))
		}
	}
	return parts
}

// added is the input of the third call.
func added(got [][]int64) []int64 {
	sum := make([]int64, 2)
	for from, part := range got {
		for k, x := range part {
			sum[0], sum[1] = sum[0]+x*int64(k+1), sum[1]^(x<<(from%5))
		}
	}
	return sum
}

// chainResults are the results of all calls, by call and task, without failures.
func chainResults(size int) [3][]any {
	swap := func(in [][][]int64) (out [][][]int64) {
		for to := range size {
			var parts [][]int64
			for from := range size {
				parts = append(parts, in[from][to])
			}
			out = append(out, parts)
		}
		return out
	}
	var first, second [][][]int64
	for task := range size {
		first = append(first, scattered(task, size))
	}
	first = swap(first)
	for task := range size {
		second = append(second, mixed(task, first[task]))
	}
	second = swap(second)
	total := make([]int64, 2)
	for _, parts := range second {
		one := added(parts)
		total[0], total[1] = total[0]+one[0], total[1]+one[1]
	}
	var all [3][]any
	for task := range size {
		all[0], all[1], all[2] = append(all[0], first[task]), append(all[1], second[task]), append(all[2], total)
	}
	return all
}

// result returns where a result is put.
func (p *heldProgram) result(call, task int) chan any {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := [2]int{call, task}
	if p.results[k] == nil {
		p.results[k] = make(chan any, 1)
	}
	return p.results[k]
}

// await returns a result, once it is there.
func (p *heldProgram) await(ctx context.Context, call, task int) (any, error) {
	c := p.result(call, task)
	select {
	case v := <-c:
		c <- v
		return v, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("rank %d has no result of task %d in call %d: %w", p.comm.Rank(), task, call, ctx.Err())
	}
}

// takeover is told the results of tasks.
func takeoverTo[Out any](p *heldProgram, call int) Option {
	return Takeover(func(task int, out Out) { p.result(call, task) <- out })
}

// work takes a while, at whose half the process may be killed.
func (p *heldProgram) work() {
	time.Sleep(heldWork / 2)
	n := p.trial.network
	n.mu.Lock()
	n.event(p.comm.Rank())
	n.mu.Unlock()
	time.Sleep(heldWork / 2)
}

// run makes all calls.
func (p *heldProgram) run(ctx context.Context) error {
	n := p.trial.network
	for chain := range chains {
		release := func() {}
		if !p.trial.without {
			release = p.comm.Hold()
		}
		if err := p.chain(ctx, chain*chainCalls); err != nil {
			return err
		}
		n.mu.Lock() // so that a victim is killed before it has released, or after
		if !n.dead[p.comm.Rank()] {
			p.released++
		}
		n.mu.Unlock()
		release()
	}
	return p.trimmed(ctx)
}

// trimmed makes some more calls, after which the log has none of the chains left. Each of
// two victims may keep one of these calls from raising the low-water mark.
func (p *heldProgram) trimmed(ctx context.Context) error {
	for range 3 {
		time.Sleep(time.Second) // until parts of taken-over tasks are done
		if err := Barrier(ctx, p.comm); err != nil {
			return err
		}
	}
	if n := core(p.comm).LoggedCalls(); n > 3 && len(p.trial.kills) <= 2 {
		return fmt.Errorf("rank %d still logs %d calls", p.comm.Rank(), n)
	}
	return nil
}

// chain makes the calls of a chain, from a number on.
func (p *heldProgram) chain(ctx context.Context, call int) error {
	w, me := p.comm, p.comm.Rank()
	first, err := Alltoall(ctx, w, scattered(me, w.Size()), takeoverTo[[][]int64](p, call),
		restoreOf(func(task int) [][]int64 { return scattered(task, w.Size()) }))
	if err != nil {
		return err
	}
	p.result(call, me) <- first
	p.work()
	second, err := Alltoall(ctx, w, mixed(me, first), takeoverTo[[][]int64](p, call+1),
		Restore(func(ctx context.Context, task int) ([][]int64, error) {
			got, err := p.await(ctx, call, task)
			if err != nil {
				return nil, err
			}
			time.Sleep(3 * heldWork) // so that others come far meanwhile
			return mixed(task, got.([][]int64)), nil
		}))
	if err != nil {
		return err
	}
	p.result(call+1, me) <- second
	total, err := Allreduce(ctx, w, added(second), Sum[int64](), takeoverTo[[]int64](p, call+2),
		Restore(func(ctx context.Context, task int) ([]int64, error) {
			got, err := p.await(ctx, call+1, task)
			if err != nil {
				return nil, err
			}
			return added(got.([][]int64)), nil
		}))
	if err != nil {
		return err
	}
	p.result(call+2, me) <- total
	return Barrier(ctx, w)
}

// run runs the trial in virtual time. The owner of each task has all its results in the end,
// unless a victim died after it had released.
func (c *heldTrial) run(t *testing.T) (events []int, err error) {
	synctest.Test(t, func(t *testing.T) {
		c.network = newNetwork(t, c.size, c.seed)
		defer c.network.close()
		c.programs = nil
		for _, e := range c.network.engines {
			c.programs = append(c.programs, &heldProgram{trial: c, comm: Comm(e.Comm()), results: make(map[[2]int]chan any)})
		}
		c.network.doom(c.kills)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		errs := c.network.each(func(w Comm) error { return c.programs[w.Rank()].run(ctx) })
		testutil.Advance(time.Second) // until views are installed everywhere
		c.network.mu.Lock()
		dead := slices.Clone(c.network.dead)
		events = slices.Clone(c.network.events)
		c.network.mu.Unlock()
		for r, e := range errs {
			if e != nil && !dead[r] {
				err = errors.Join(err, fmt.Errorf("rank %d: %w", r, e))
			}
		}
		if err == nil {
			err = c.check(ctx, dead)
		}
	})
	return events, err
}

// check compares the results that the owners of tasks have.
func (c *heldTrial) check(ctx context.Context, dead []bool) error {
	chain := 0 // the first that no victim had released
	for r, gone := range dead {
		if gone {
			chain = max(chain, c.programs[r].released)
		}
	}
	survivor := c.programs[slices.Index(dead, false)]
	for ; chain < chains; chain++ {
		for i, want := range chainResults(c.size) {
			for task := range c.size {
				got, err := c.programs[survivor.comm.Owner(task)].await(ctx, chain*chainCalls+i, task)
				if err != nil {
					return err
				}
				if fmt.Sprint(got) != fmt.Sprint(want[task]) {
					return fmt.Errorf("chain %d, call %d, task %d: %v, want %v", chain, i, task, got, want[task])
				}
			}
		}
	}
	return nil
}

func (c heldTrial) mustRun(t *testing.T) {
	t.Helper()
	if _, err := c.run(t); err != nil {
		t.Fatalf("%d processes, kills %v, seed %d: %v", c.size, c.kills, c.seed, err)
	}
}

// The results of all held calls survive, each process as victim, killed at each of its
// events: messages, and the middle of its work between calls.
func TestHoldEveryVictimAtEveryEvent(t *testing.T) {
	count, sizes := 0, []int{2, 3, 4, 5, 8}
	if testutil.RaceEnabled || testing.Short() {
		sizes = sizes[:3]
	}
	for _, size := range sizes {
		events, err := (&heldTrial{size: size}).run(t)
		if err != nil {
			t.Fatal(err)
		}
		for victim := range size {
			for at := range events[victim] + 1 {
				heldTrial{size: size, kills: map[int]int{victim: at}, seed: uint64(at)}.mustRun(t)
				count++
			}
		}
	}
	t.Logf("%d cases", count)
}

// Two victims, of which the second is the new owner of the first one's task: the results
// that the first had, and the second had got again, survive both.
func TestHoldAdopterDiesToo(t *testing.T) {
	count, sizes, every := 0, []int{3, 4}, 11
	switch {
	case testutil.Full.On():
		every = 1
	case testutil.RaceEnabled || testing.Short():
		every = 101
	}
	for _, size := range sizes {
		events, err := (&heldTrial{size: size}).run(t)
		if err != nil {
			t.Fatal(err)
		}
		for victim := range size {
			adopter := (victim + 1) % size
			for at := range events[victim] + 1 {
				for then := range 2 * events[adopter] {
					count++
					if count%every == 0 {
						heldTrial{size: size, kills: map[int]int{victim: at, adopter: then}, seed: uint64(at + then)}.mustRun(t)
					}
				}
			}
		}
	}
	t.Logf("%d cases", count/every)
}

// Random victims of larger jobs, up to all but one.
func TestHoldManyVictims(t *testing.T) {
	count := 300
	switch {
	case testutil.Full.On():
		count = 20_000
	case testutil.RaceEnabled || testing.Short():
		count = 30
	}
	for seed := range uint64(count) {
		rng := rand.New(rand.NewPCG(seed, 22))
		c := heldTrial{size: 3 + rng.IntN(10), kills: make(map[int]int), seed: seed}
		for _, victim := range rng.Perm(c.size)[:1+rng.IntN(c.size-1)] {
			c.kills[victim] = rng.IntN(10 * chains * c.size)
		}
		c.mustRun(t)
	}
}

// Without Hold, what a process has received dies with it, if it works for a while.
func TestHoldIsNeeded(t *testing.T) {
	c := heldTrial{size: 3, without: true}
	events, err := c.run(t)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for at := range events[1] + 1 {
		c.kills = map[int]int{1: at}
		if _, err := c.run(t); err != nil { // a Restore waits for what is lost
			lost++
		}
	}
	if lost == 0 {
		t.Error("no result was lost, so the other tests prove nothing")
	}
	t.Logf("lost in %d of %d cases", lost, events[1]+1)
}

// A task that is run again with other work sends another message, although it differs in one
// of very many numbers only. All survivors are told which task, and in which call. If it is
// the same message, no process is told anything.
func TestHoldFindsWorkThatIsNotDeterministic(t *testing.T) {
	for _, again := range []int64{0, 1} {
		for r, err := range repeatWork(t, again) {
			var d *DivergedError
			switch {
			case r == 1: // the victim
			case again == 0 && err != nil:
				t.Errorf("rank %d: %v, although the task sends the same again", r, err)
			case again == 1 && (!errors.As(err, &d) || d.Task != 1 || d.Call != 0):
				t.Errorf("rank %d: %v, want a DivergedError of task 1 in call 0", r, err)
			}
		}
	}
}

// repeatWork kills rank 1 after an Alltoall of long messages, in each of which one number is
// another if the task is run again.
func repeatWork(t *testing.T, again int64) (errs []error) {
	const long = 100_000
	parts := func(number int64) [][]int64 {
		all := make([][]int64, 3)
		for i := range all {
			all[i] = make([]int64, long)
			all[i][long/2+7] = number
		}
		return all
	}
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 3, 1)
		defer n.close()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		errs = n.each(func(w Comm) error {
			time.Sleep(time.Duration(w.Rank()) * time.Millisecond) // messages arrive before some hold
			defer w.Hold()()
			if _, err := Alltoall(ctx, w, parts(0), restoreOf(func(int) [][]int64 { return parts(again) })); err != nil {
				return err
			}
			time.Sleep(heldWork)
			if w.Rank() == 1 {
				n.mu.Lock()
				n.kill(1)
				n.mu.Unlock()
			}
			time.Sleep(heldWork) // until the part is run again
			return Barrier(ctx, w)
		})
	})
	return errs
}

// Calls that are held beyond the limits of the log end with an error on all processes, also
// if only one holds and the log of another is full. After release, calls go on.
func TestHoldIsLimited(t *testing.T) {
	for name, c := range map[string]struct {
		config engine.Config
		length int
		holder int // -1: all
		full   int // whose log is full; -1: any
		calls  int // that succeed
	}{
		"calls":                  {engine.Config{KeepCalls: 4}, 1, -1, -1, 4},
		"calls of one":           {engine.Config{KeepCalls: 4}, 1, 2, -1, 4},
		"bytes":                  {engine.Config{KeepBytes: 100_000}, 5_000, -1, 0, 2},
		"bytes of one for other": {engine.Config{KeepBytes: 100_000}, 5_000, 2, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetworkOf(t, 3, 1, c.config)
				defer n.close()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				for r, err := range n.each(func(w Comm) error { return exceedHold(ctx, w, c.holder, c.full, c.length, c.calls) }) {
					if err != nil {
						t.Errorf("rank %d: %v", r, err)
					}
				}
			})
		})
	}
}

// exceedHold makes calls in which task 0 sends long messages, until the limits are reached.
func exceedHold(ctx context.Context, w Comm, holder, full, length, calls int) error {
	release := func() {}
	if holder < 0 || w.Rank() == holder {
		release = w.Hold()
	}
	parts := make([][]int64, w.Size())
	if w.Rank() == 0 {
		for i := range parts {
			parts[i] = make([]int64, length)
		}
	}
	for call := 0; ; call++ {
		_, err := Alltoall(ctx, w, parts)
		if err == nil {
			continue
		}
		var h *HoldError
		if !errors.As(err, &h) || call != calls || h.First != 0 || h.Call != uint64(calls) ||
			holder >= 0 && h.Holder != holder || full >= 0 && h.Rank != full {
			return fmt.Errorf("call %d: %w", call, err)
		}
		break
	}
	release()
	time.Sleep(time.Second) // until all have
	for range 3 * calls {
		if _, err := Alltoall(ctx, w, parts); err != nil {
			return fmt.Errorf("after release: %w", err)
		}
	}
	return nil
}
