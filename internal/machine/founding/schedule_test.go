package founding

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

const second = 1000 * millisecond

// schedule lets processes start, die and, if they may, be restarted in any order, cut
// off from each other for a while, and then heals everything.
func (w *world) schedule(restart bool) (err error) {
	for _, p := range w.processes {
		w.after(w.upTo(second), func() { w.start(p) })
	}
	for range 3 + w.rng.IntN(10) {
		w.run(w.upTo(400*millisecond), nil)
		p, q := w.processes[w.rng.IntN(len(w.processes))], w.processes[w.rng.IntN(len(w.processes))]
		switch w.rng.IntN(4) {
		case 0:
			w.kill(p)
		case 1:
			if restart && !p.up && p.life > 0 {
				w.start(p)
			}
		case 2:
			w.logf("p%d is cut off", p.i)
			for _, o := range w.processes {
				w.cut(p, o)
			}
			if w.rng.IntN(2) == 0 {
				clear(w.blocked)
				w.cut(p, q)
				w.logf("only from p%d", q.i)
			}
		case 3:
			clear(w.blocked)
		}
	}
	w.loss = 0
	clear(w.blocked)
	w.logf("all heals")
	if !restart {
		w.run(20*second, nil)
		return w.failure
	}
	w.run(2*second, nil)
	for _, p := range w.processes {
		if !p.up {
			w.start(p)
		}
	}
	settled := w.run(60*second, w.settled)
	if w.failure == nil && !settled && !w.stuck() {
		w.failure = fmt.Errorf("no group a minute after the last fault")
	}
	return w.failure
}

// Processes die and are restarted, requests are lost and late, and networks cut: there
// is never more than one group, and once the trouble ends, all are in it.
func TestRandomSchedules(t *testing.T) {
	schedules := uint64(1000)
	if testutil.RaceEnabled || testing.Short() {
		schedules = 100
	}
	first, only := uint64(testutil.Seed.Or(0)), testutil.Seed.On()
	if only {
		schedules = 1
	}
	stuck, groups := 0, 0
	for seed := first; seed < first+schedules; seed++ {
		// With restarts, all processes are expected. Without, a majority of them.
		restart := seed%2 == 0
		size := 1 + int(seed/2%7)
		expect := size
		if !restart {
			expect = size/2 + 1 + int(seed/16)%(size-size/2)
		}
		run := func(verbose bool) *world {
			w := newWorld(seed, size, expect)
			w.verbose = verbose
			_ = w.schedule(restart)
			return w
		}
		w := run(only)
		if w.failure != nil {
			w = run(true)
			t.Fatalf("seed %d, %d of %d, restarts %v: %v\n%s", seed, expect, size, restart, w.failure, strings.Join(w.log, "\n"))
		}
		if restart && w.stuck() {
			stuck++
		}
		groups += len(w.groups)
	}
	t.Logf("%d schedules, %d groups, %d without a quorum in the end", schedules, groups, stuck)
}

// A schedule that finds nothing is worth something only if it can find something: if a
// founder that does not answer counts as gone, two groups begin.
func TestSchedulesFindABrokenPromise(t *testing.T) {
	for seed := uint64(6000); seed < 7000; seed++ { // about one in a few thousand is unlucky enough
		w := newWorld(seed, 5, 3)
		w.timeouts, w.loss = true, 0.2
		if w.schedule(false) != nil {
			t.Logf("seed %d: %v", seed, w.failure)
			return
		}
	}
	t.Error("not found")
}

// Without faults, the group begins as soon as all have asked a few times.
func TestBeginsQuickly(t *testing.T) {
	for _, size := range []int{1, 2, 5, 50} {
		w := newWorld(1, size, size)
		w.loss, w.seeds = 0, []string{address(size / 2)}
		for _, p := range w.processes {
			w.start(p)
		}
		w.run(30*second, w.settled)
		t.Logf("%d processes, one seed: %d ms", size, w.now/millisecond)
		if !w.settled() || len(w.groups) != 1 || len(w.groups[0].began) != size || w.now > 5*second {
			t.Errorf("%d processes: settled %v, %d groups after %d ms", size, w.settled(), len(w.groups), w.now/millisecond)
		}
	}
}
