package collective

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// silentCalls is how many calls a job with stopped processes makes.
const silentCalls = 4

// silentTrial is a job whose processes are stopped, each at one of its events, without anybody
// being told. They go on when all others are done, or when the root has its first result.
type silentTrial struct {
	size, f int
	all     bool
	seed    uint64
	stops   map[int]int
	early   bool // they go on early
}

// run runs the job, and returns how long calls took, by rank, and what is wrong. Time passes
// only while all processes wait, so no process is waited for too briefly.
func (c *silentTrial) run(t *testing.T) (events []int, took [][silentCalls]time.Duration, err error) {
	n := newNetwork(t, c.size, c.seed)
	defer n.close()
	n.noViews = true
	for rank, at := range c.stops {
		n.stopAt[rank] = at
	}
	resume := func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.resume()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	root := correctedRoot(c.size, c.all)
	got := make([][silentCalls]uint64, c.size)
	took = make([][silentCalls]time.Duration, c.size)
	var live sync.WaitGroup
	live.Add(c.size - len(c.stops))
	n.running.Go(func() { live.Wait(); resume() })
	errs := n.each(func(w Comm) error {
		if _, stopped := c.stops[w.Rank()]; !stopped {
			defer live.Done()
		}
		for call := range silentCalls {
			began := time.Now()
			sum, err := c.call(ctx, w, root)
			if err != nil {
				return err
			}
			if len(sum) > 0 {
				got[w.Rank()][call] = sum[0]
			}
			took[w.Rank()][call] = time.Since(began)
			if w.Rank() == root && c.early {
				resume()
			}
		}
		return nil
	})
	for r := range c.size {
		if errs[r] != nil {
			return nil, took, fmt.Errorf("rank %d: %w", r, errs[r])
		}
	}
	return n.events, took, c.check(got, root)
}

func (c *silentTrial) call(ctx context.Context, w Comm, root int) ([]uint64, error) {
	if c.all {
		return Allreduce(ctx, w, digit(w.Rank()), Sum[uint64](), Corrected(c.f))
	}
	return Reduce(ctx, w, root, digit(w.Rank()), Sum[uint64](), Corrected(c.f))
}

// check checks that all processes have the same results, with the inputs of all that were
// not stopped. A stopped process that goes on early may have taken others for silent, because
// its timers have not been stopped: that costs inputs, and never agreement.
func (c *silentTrial) check(got [][silentCalls]uint64, root int) error {
	for call, want := range got[root] {
		for r := range c.size {
			_, stopped := c.stops[r]
			if c.all && got[r][call] != want {
				return fmt.Errorf("call %d: rank %d got %o, the root %o", call, r, got[r][call], want)
			}
			if count := want >> (3 * r) & 7; count > 1 || count == 0 && !stopped && !c.early {
				return fmt.Errorf("call %d: the root got %o: task %d is counted %d times", call, want, r, count)
			}
		}
	}
	return nil
}

// silentStride is the share of the cases that are tried: all with PLEACH_FULL.
func silentStride() int {
	switch {
	case testutil.Full.On():
		return 1
	case testutil.RaceEnabled || testing.Short():
		return 10
	}
	return 3
}

// Up to f processes that are silent at any event, and come back later: the others have the
// same results, with all their inputs, and wait at most once for each; those that come back have them,
// too.
func TestCorrectedWithUpToFSilent(t *testing.T) {
	count := 0
	for size := 2; size <= 11; size++ {
		for f := 1; f <= 2; f++ {
			if f == 2 && size > 8 {
				continue // nothing new: f = 1 has all depths of subtrees
			}
			for _, all := range []bool{false, true} {
				for _, stops := range stoppings(t, size, f, all) {
					count++
					if count%silentStride() > 0 {
						continue
					}
					c := silentTrial{size, f, all, uint64(count), stops, count%3 == 0}
					synctest.Test(t, func(t *testing.T) {
						_, took, err := c.run(t)
						if waited := c.waited(took); err == nil && waited > time.Duration(len(stops))*firstAnswer {
							err = fmt.Errorf("calls have waited for %v: %v", waited, took)
						}
						if err != nil {
							t.Fatalf("%+v: %v", c, err)
						}
					})
				}
			}
		}
	}
	t.Logf("%d cases", count)
}

// firstAnswer is how long a process that has measured nothing waits for an answer, and the
// time until it asks.
const firstAnswer = 625 * time.Millisecond

// waited returns how long all calls of a process that was not stopped took at most.
func (c *silentTrial) waited(took [][silentCalls]time.Duration) (most time.Duration) {
	for r, calls := range took {
		if _, stopped := c.stops[r]; stopped || c.early {
			continue
		}
		sum := time.Duration(0)
		for _, d := range calls {
			sum += d
		}
		most = max(most, sum)
	}
	return most
}

// stoppings are the ways to stop up to f processes in the first two calls, but not the root.
func stoppings(t *testing.T, size, f int, all bool) (ways []map[int]int) {
	var events []int
	synctest.Test(t, func(t *testing.T) {
		c := silentTrial{size: size, f: f, all: all}
		var err error
		events, _, err = c.run(t)
		if err != nil {
			t.Fatal(err)
		}
	})
	rng := rand.New(rand.NewPCG(uint64(size), uint64(f)))
	root := correctedRoot(size, all)
	for a := range size {
		for at := 1; a != root && at <= events[a]/2; at++ {
			ways = append(ways, map[int]int{a: at})
			for b := range size {
				if f == 2 && b != root && b != a {
					ways = append(ways, map[int]int{a: at, b: 1 + rng.IntN(events[b]/2)}, map[int]int{a: at, b: 1})
				}
			}
		}
	}
	return ways
}
