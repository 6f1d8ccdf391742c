package collective

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// trial is one run: collectives one after the other, and which process is killed at which
// of its events.
type trial struct {
	what    string // as PLEACH_CASE gives it
	calls   []sample
	size    int
	kills   map[int]int
	seed    uint64
	short   bool          // algorithms for long messages are taken for short ones
	hosts   []string      // by task; nil: there is one
	stops   map[int]int   // by rank: the event from which on the process is stopped
	stuck   time.Duration // until they go on
	removed int           // processes that were removed or killed, after the run
	took    time.Duration // until all processes were done that were not stopped
}

// shortThresholds select the algorithms for long messages for short ones.
func shortThresholds() engine.Thresholds {
	return engine.Thresholds{Halving: 24, Chain: 24, Tree: 16, Segment: 32, Part: 160, Bruck: 2, BruckPart: 4}
}

func engineConfig(short bool) (c engine.Config) {
	if short {
		c.Thresholds = shortThresholds()
	}
	return c
}

const patience = 30 * time.Second

// run runs a trial and says what is wrong.
func (c *trial) run(t testing.TB) (events []int, err error) {
	config := engineConfig(c.short)
	if c.hosts != nil {
		config = levelsConfig(config, c.hosts)
	}
	var n *network
	n = newNetworkWith(t, c.size, c.seed, config, func(_ int, e *engine.Config) {
		if c.stops != nil {
			e.ProgressTimeout, e.Evict = stuckTimeout, func(rank int, _ error) { go n.doom(map[int]int{rank: 0}) }
		}
	})
	defer n.close()
	n.doom(c.kills)
	n.stop(c.stops, c.stuck)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.removed = 0
	began := time.Now()
	var mu sync.Mutex
	var wrong []error
	had := make(map[[2]int]bool) // tasks whose results a process has got, by round
	errs := n.each(func(e Comm) error {
		for round, call := range c.calls {
			err := call.run(ctx, e, round, func(task int, got string) {
				mu.Lock()
				defer mu.Unlock()
				want := call.want(task, c.size, round)
				switch {
				case got == want:
					had[[2]int{round, task}] = true
				case e.alive():
					wrong = append(wrong, fmt.Errorf("rank %d, call %d (%s), task %d: got %s, want %s", e.Rank(), round, call.name,
						task, got, want))
				}
			})
			if err != nil {
				return fmt.Errorf("rank %d, call %d (%s): %w", e.Rank(), round, call.name, err)
			}
		}
		err := Barrier(ctx, e)
		if _, stopped := c.stops[e.Rank()]; !stopped {
			mu.Lock()
			defer mu.Unlock()
			c.took = time.Since(began)
		}
		return err
	})
	n.mu.Lock()
	for r, err := range errs {
		if n.dead[r] {
			c.removed++
		} else if err != nil {
			wrong = append(wrong, err)
		}
	}
	n.mu.Unlock()
	if len(wrong) == 0 {
		wrong = c.missing(&mu, had)
	}
	mu.Lock()
	defer mu.Unlock()
	return n.events, errors.Join(wrong...)
}

// missing waits for the results of all tasks, and says whose did not come. Those
// of the dead may come after all calls are over.
func (c *trial) missing(mu *sync.Mutex, had map[[2]int]bool) (wrong []error) {
	testutil.Within(patience, func() bool {
		mu.Lock()
		defer mu.Unlock()
		wrong = nil
		for round, call := range c.calls {
			for task := range c.size {
				if call.want(task, c.size, round) != "" && !had[[2]int{round, task}] && !call.quiet {
					wrong = append(wrong, fmt.Errorf("call %d (%s): no process got the result of task %d", round, call.name, task))
				}
			}
		}
		return len(wrong) == 0
	})
	return wrong
}

// alive reports whether the process has not been killed. A result of a killed process does
// not count.
func (c Comm) alive() bool { return core(c).Err() == nil }

func (c *trial) check(t *testing.T) bool {
	if testutil.Case.On() && testutil.Case.Text() != c.what {
		return true
	}
	if _, err := c.run(t); err != nil {
		t.Errorf("%v\nreplay: PLEACH_CASE='%s' go test -run '^%s$' ./collective", err, c.what, t.Name())
	}
	return !t.Failed()
}

// The right answer, always: each collective, each process as victim, killed at
// each of its events, or with 8 processes each fourth, returns on every survivor what a run
// without failures does.
// Two different calls in a row show that no process is left behind in the first.
func TestEveryVictimAtEveryStep(t *testing.T) {
	count := 0
	sizes := []int{1, 2, 3, 4, 5, 8}
	switch {
	case testutil.Full.On():
	case testutil.RaceEnabled || testing.Short():
		sizes = sizes[:4]
	default:
		sizes = sizes[:5]
	}
	for _, size := range sizes {
		for i, s := range samples() {
			c := trial{calls: []sample{s, samples()[(i+3)%len(samples())]}, size: size}
			count += c.everyVictim(t, s.name)
			if s.sized {
				c.calls, c.short = []sample{s, s}, true
				count += c.everyVictim(t, s.name+"-short")
			}
		}
	}
	t.Logf("%d cases", count)
}

// everyVictim runs a trial for each victim and each of its events, or some of them.
func (c trial) everyVictim(t *testing.T, name string) (count int) {
	t.Helper()
	events, err := c.run(t)
	if err != nil {
		t.Fatalf("%s, %d processes, without failures: %v", name, c.size, err)
	}
	for victim := range c.size {
		if c.size == 1 {
			break
		}
		for at := victim % c.stride(); at <= events[victim]; at += c.stride() {
			c := c
			c.what = fmt.Sprintf("%s/%d/%d@%d", name, c.size, victim, at)
			c.kills, c.seed = map[int]int{victim: at}, uint64(at)
			count++
			if !c.check(t) {
				t.FailNow()
			}
		}
	}
	return count
}

// stride is the distance of the events at which a victim is killed: 1 where all are tried.
func (c trial) stride() int {
	if !testutil.Full.On() && (testutil.RaceEnabled || testing.Short() || c.size > 5) {
		return 4
	}
	return 1
}

// Random sequences of calls, with several victims at random moments.
func TestManyVictims(t *testing.T) {
	count := 200
	switch {
	case testutil.Full.On():
		count = 20_000
	case testutil.RaceEnabled || testing.Short():
		count = 60
	}
	for seed := range uint64(count) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := &trial{what: fmt.Sprint(seed), size: 16, seed: seed, kills: make(map[int]int), short: seed%3 == 0}
		if rng.IntN(3) == 0 {
			c.size = 2 + rng.IntN(15)
		}
		for range 1 + rng.IntN(6) {
			call := samples()[rng.IntN(len(samples()))]
			if c.short && strings.HasSuffix(call.name, "-large") {
				continue // in far too many pieces
			}
			c.calls = append(c.calls, call)
		}
		victims := 1 + rng.IntN(3)
		if rng.IntN(10) == 0 {
			victims = c.size - 1
		}
		for _, victim := range rng.Perm(c.size)[:min(victims, c.size-1)] {
			c.kills[victim] = rng.IntN(20*len(c.calls) + 1)
		}
		if !c.check(t) {
			return
		}
	}
	t.Logf("%d cases", count)
}
