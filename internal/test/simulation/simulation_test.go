package simulation

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// underSeeds runs a test's seeds, fewer with the race detector or -short, and reports those that
// fail. PLEACH_SEEDS runs that many, from PLEACH_FIRST on. PLEACH_SEED replays one and prints its
// timeline; then nothing is returned.
func underSeeds(t *testing.T, seeds, few int, o Options) *totals {
	t.Helper()
	if testutil.Seed.On() {
		replay(t, uint64(testutil.Seed.Or(0)), o)
		return nil
	}
	if testutil.RaceEnabled || testing.Short() {
		seeds = few
	}
	return runSeeds(uint64(testutil.First.Or(1)), uint64(testutil.Seeds.Or(seeds)), o, func(r *Result) {
		t.Errorf("%v\nreplay: PLEACH_SEED=%d go test -count=1 -run '%s$' -v ./internal/test/simulation", r.Err, r.Seed,
			t.Name())
	})
}

// exercised fails a test whose seeds have done too little of something: less than once in so many
// seeds.
func (total *totals) exercised(t *testing.T, every uint64, counts map[string]uint64) {
	t.Helper()
	for name, count := range counts {
		if count < total.seeds.Load()/every {
			t.Errorf("only %d %s: the seeds exercise little", count, name)
		}
	}
}

// Whole groups keep their promises under many seeds.
func TestGroupsUnderSeeds(t *testing.T) {
	total := underSeeds(t, 1_200, 200, Options{})
	if total == nil {
		return
	}
	t.Logf("%d seeds: %d events, %d frames, %d messages delivered, %d to single members, %d views, %d receipts, %d groups, %d seats, %d saves, %d without a quorum in the end",
		total.seeds.Load(), total.events.Load(), total.frames.Load(), total.delivered.Load(), total.unicasts.Load(),
		total.views.Load(), total.receipts.Load(), total.groups.Load(), total.seats.Load(), total.saves.Load(),
		total.stuck.Load())
	if total.stuck.Load() > total.seeds.Load()/5 {
		t.Error("too many seeds lose the quorum: they check nothing about what comes after the trouble")
	}
	total.exercised(t, 2, map[string]uint64{
		"messages":                   total.delivered.Load(),
		"messages to single members": total.unicasts.Load(), "receipts": total.receipts.Load(), "groups": total.groups.Load(),
		"seats": total.seats.Load(), "saves": total.saves.Load(),
	})
}

// Groups keep their promises also while they are upgraded from one protocol version to the
// next.
func TestUpgradesUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 150, 30, Options{Upgrade: true}); total != nil {
		total.exercised(t, 2, map[string]uint64{"messages": total.delivered.Load()})
	}
}

// Members that are cut off from a quorum know it before the others go on.
func TestCutsUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 150, 30, Options{Cut: true}); total != nil {
		total.exercised(t, 1, map[string]uint64{"members that are told before a view": total.told.Load()})
	}
}

// Members whose only way back is through processes outside their views find it.
func TestApartUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 200, 60, Options{Apart: true}); total != nil {
		total.exercised(t, 40, map[string]uint64{
			"decisions of processes outside the view": total.learned.Load(),
			"removals that a seed reports":            total.removed.Load(),
		})
	}
}

// Joiners get the state of the group where their messages begin, and all members have the same.
func TestStatesUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 200, 30, Options{State: true}); total != nil {
		total.exercised(t, 2, map[string]uint64{
			"states of joiners": total.states.Load(),
			"elections":         total.elections.Load(),
		})
	}
}

// Groups keep their promises also if most processes are started again at other addresses.
func TestMovesUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 50, 30, Options{Moves: true}); total != nil {
		total.exercised(t, 2, map[string]uint64{"seats": total.seats.Load()})
	}
}

// A process that began a view without the help of a member, because all others were dead or had
// been started again, was told that messages of earlier views are lost (case 80).
func TestSeedOfViewBegunAlone(t *testing.T) {
	if r := Run(3_000_677, Options{Moves: true}); r.Err != nil {
		t.Error(r.Err)
	}
}

// A restarted process found the decision of a view whose only other member had left the group
// since. It began that view, alone and without a quorum, and kept the others from a new group.
func TestSeedOfDecisionFoundLate(t *testing.T) {
	if r := Run(7_101_618, Options{Upgrade: true}); r.Err != nil {
		t.Error(r.Err)
	}
}

// A candidate whose seeds are all out of date joins the group whose members introduce themselves.
func TestSeedOfCandidateWithOldSeeds(t *testing.T) {
	if r := Run(7_101_027, Options{Upgrade: true}); r.Err != nil {
		t.Error(r.Err)
	}
}

// Groups keep their promises also if some processes do what no correct one does.
func TestStrangeUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 150, 30, Options{Strange: true}); total != nil {
		total.exercised(t, 2, map[string]uint64{"messages": total.delivered.Load()})
	}
}

// Groups keep their promises also if programs use all that a member offers.
func TestRichUnderSeeds(t *testing.T) {
	if total := underSeeds(t, 150, 30, Options{Rich: true}); total != nil {
		total.exercised(t, 1, map[string]uint64{
			"messages to topics":     total.topical.Load(),
			"receipts of processing": total.processed.Load(),
		})
	}
}

// replay runs one seed and prints its timeline.
func replay(t *testing.T, seed uint64, o Options) {
	o.Timeline = os.Stdout
	r := Run(seed, o)
	t.Logf("hash %x, %d events, %d frames, stuck %t", r.Hash, r.Events, r.Frames, r.Stuck)
	if r.Err != nil {
		t.Error(r.Err)
	}
}

// totals counts over seeds.
type totals struct {
	seeds, events, frames, delivered, unicasts, topical, views, receipts, processed, groups, seats, saves, told, learned,
	removed, states, elections, stuck, roles, observers, claims, granted, refused atomic.Uint64
	ordered, restored, anew, operations, leases, owned, rolled atomic.Uint64 // of services
}

// maxFailures is how many failing seeds are reported.
const maxFailures = 5

// runSeeds runs seeds on all cores, until some have failed.
func runSeeds(first, seeds uint64, o Options, failed func(*Result)) *totals {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // many short lives, little memory
	var total totals
	var next, failures atomic.Uint64
	next.Store(first - 1)
	var workers sync.WaitGroup
	var mu sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for failures.Load() < maxFailures {
				seed := next.Add(1)
				if seed >= first+seeds {
					return
				}
				r := Run(seed, o)
				total.add(&r)
				if r.Err != nil && failures.Add(1) <= maxFailures {
					mu.Lock()
					failed(&r)
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return &total
}

func (c *totals) add(r *Result) {
	c.seeds.Add(1)
	c.events.Add(r.Events)
	c.frames.Add(r.Frames)
	c.delivered.Add(r.Delivered)
	c.unicasts.Add(r.Unicasts)
	c.topical.Add(r.Topical)
	c.views.Add(r.Views)
	c.receipts.Add(r.Receipts)
	c.processed.Add(r.Processed)
	c.groups.Add(r.Groups)
	c.seats.Add(r.Seats)
	c.saves.Add(r.Saves)
	c.told.Add(r.Told)
	c.learned.Add(r.Learned)
	c.states.Add(r.States)
	c.roles.Add(r.Roles)
	c.claims.Add(r.Claims)
	c.granted.Add(r.Granted)
	c.refused.Add(r.Refused)
	c.observers.Add(r.Observers)
	c.elections.Add(r.Elections)
	c.removed.Add(r.Removed)
	c.ordered.Add(r.Ordered)
	c.restored.Add(r.Restored)
	c.anew.Add(r.Anew)
	c.rolled.Add(r.Rolled)
	c.operations.Add(r.Operations)
	c.leases.Add(r.Leases)
	c.owned.Add(r.Owned)
	if r.Stuck {
		c.stuck.Add(1)
	}
}

// A seed decides everything: the same one gives the same events.
func TestSeedIsReproducible(t *testing.T) {
	hashes := make(map[uint64]uint64)
	for seed := range uint64(40) {
		o := Options{Services: seed >= 30}
		a, b := Run(seed, o), Run(seed, o)
		if a.Hash != b.Hash || a.Events != b.Events {
			t.Errorf("seed %d: %d events with hash %x, then %d with %x", seed, a.Events, a.Hash, b.Events, b.Hash)
		}
		if other, same := hashes[a.Hash]; same {
			t.Errorf("seeds %d and %d are the same run", other, seed)
		}
		hashes[a.Hash] = seed
	}
}
