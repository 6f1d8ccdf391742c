package lifecycle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// Groups whose processes crash at every action, one by one and all at once, while they begin
// and while they come back, at the same and at other addresses, with disks that keep what
// was synced and maybe more. There is one view of a number. When nothing crashes any more
// and all are started, they are one group.
//
// PLEACH_SEEDS=n runs n of them, and PLEACH_SEED=s just that one.
func TestRandomLives(t *testing.T) {
	if testutil.Seed.On() {
		live(t, uint64(testutil.Seed.Or(0)))
		return
	}
	lives := 2000
	if testutil.RaceEnabled || testing.Short() {
		lives = 200
	}
	for seed := range uint64(testutil.Seeds.Or(lives)) {
		if live(t, seed); t.Failed() {
			return
		}
	}
}

// live runs one seed.
func live(t *testing.T, seed uint64) {
	w := newWorld(seed)
	err := w.live()
	if err != nil {
		t.Errorf("seed %d: %v\n%s\n%s", seed, err, strings.Join(w.log[max(0, len(w.log)-120):], "\n"), w.situation())
	}
}

// live lets processes crash and come back, and then leaves them alone.
func (w *world) live() error {
	w.startAll()
	if w.rng.IntN(2) == 0 {
		w.calm = true
		w.run(5000*millisecond, w.together)
		w.calm = false
	}
	for range 3 + w.rng.IntN(12) {
		w.run(millisecond*(1+protocol.Time(w.rng.IntN([]int{50, 300, 1500}[w.rng.IntN(3)]))), nil)
		some := w.hosts[w.rng.IntN(len(w.hosts))]
		switch w.rng.IntN(8) {
		case 0, 1:
			some.crash()
		case 2:
			some.leave()
		case 3:
			some.crash()
			for _, h := range w.hosts {
				h.leave()
			}
			w.run(protocol.Time(w.rng.IntN(2000))*millisecond, nil)
		default:
			for _, h := range w.hosts {
				h.crash()
			}
		}
		if w.rng.IntN(4) > 0 {
			w.startAll()
		}
	}
	for _, h := range w.hosts {
		h.crash()
	}
	w.calm = true
	w.logf("all are left alone")
	w.startAll()
	began := w.now
	back := w.run(30_000*millisecond, w.together)
	switch {
	case w.failure != nil:
		return w.failure
	case !back:
		return fmt.Errorf("no group 30 s after the last crash")
	case w.now-began > 10_000*millisecond:
		return fmt.Errorf("a group %d ms after the last crash", (w.now-began)/millisecond)
	}
	return nil
}
