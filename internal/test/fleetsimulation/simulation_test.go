package fleetsimulation

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Fleets keep their promises under many seeds. PLEACH_SEED replays one and prints its
// timeline. PLEACH_SEEDS runs that many, from PLEACH_FIRST on.
func TestFleetsUnderSeeds(t *testing.T) {
	if seed := uint64(testutil.Seed.Or(0)); seed > 0 {
		r := Run(seed, Options{Timeline: os.Stdout})
		t.Logf("%d events, %d sent, %d delivered, %d lost", r.Events, r.Sent, r.Delivered, r.Lost)
		if r.Err != nil {
			t.Error(r.Err)
		}
		return
	}
	seeds := 1000
	if testutil.RaceEnabled || testing.Short() {
		seeds = 30
	}
	total := runSeeds(uint64(testutil.First.Or(1)), uint64(testutil.Seeds.Or(seeds)), Options{}, func(r *Result) {
		t.Errorf("%v\nreplay: PLEACH_SEED=%d go test -count=1 -run 'TestFleetsUnderSeeds$' -v ./internal/test/fleetsimulation", r.Err, r.Seed)
	})
	t.Logf("%d seeds: %d events, %d messages sent, %d delivered, %d lost to zones that were given up, %d kills, %d cuts",
		total.Seed, total.Events, total.Sent, total.Delivered, total.Lost, total.Kills, total.Cuts)
	t.Logf("after the trouble, all zones are in one backbone within %.0f s, and no delegate has left more than %d",
		float64(total.Apart)/1e9, total.Departed)
}

// Seeds that have failed, beyond those of every run: a zone that had given up messages of a
// dead zone did not ship those after them; a gateway that was not the lead waited for ever for a
// message that nobody had, with what followed it; a delegate did not know whom its lead waited for;
// a lead waited for ever for an acknowledgment that was lost; two leads told a zone that was new
// different beginnings.
func TestFleetsUnderSeedsThatHaveFailed(t *testing.T) {
	for _, seed := range []uint64{3088, 29076, 211194, 327395, 442788, 634020, 3702, 143819, 3000677} {
		if r := Run(seed, Options{}); r.Err != nil {
			t.Errorf("seed %d: %v", seed, r.Err)
		}
	}
}

// maxFailures is how many failing seeds are reported.
const maxFailures = 5

// runSeeds runs seeds on all cores, until some have failed. It returns sums; Seed counts seeds.
func runSeeds(first, seeds uint64, o Options, failed func(*Result)) (total Result) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // many short lives, little memory
	var next atomic.Uint64
	next.Store(first - 1)
	var workers sync.WaitGroup
	var mu sync.Mutex
	failures := 0
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := next.Add(1); seed < first+seeds; seed = next.Add(1) {
				r := Run(seed, o)
				mu.Lock()
				total.Seed++
				total.Events += r.Events
				total.Sent += r.Sent
				total.Delivered += r.Delivered
				total.Lost += r.Lost
				total.Kills += r.Kills
				total.Cuts += r.Cuts
				total.Apart = max(total.Apart, r.Apart)
				total.Departed = max(total.Departed, r.Departed)
				if r.Err != nil {
					failures++
					failed(&r)
				}
				enough := failures >= maxFailures
				mu.Unlock()
				if enough {
					return
				}
			}
		})
	}
	workers.Wait()
	return total
}
