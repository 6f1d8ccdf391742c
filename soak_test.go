package pleach_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/testutil"
)

// report is what became of one run, or of many.
type report struct {
	seeds, failed, delivered, lost, duplicated int
	catchUp                                    time.Duration // the longest
	peakKiB                                    int           // the most of any member
}

// maxPeakKiB bounds a member's memory. It is generous: here a member keeps about
// 30 MiB for others, and Go's collector as much again.
const maxPeakKiB = 256 << 10

// check fails the test if a promise was broken.
func (r *report) check(t *testing.T) {
	t.Helper()
	if r.lost > 0 || r.duplicated > 0 {
		t.Errorf("%d messages lost, %d duplicated", r.lost, r.duplicated)
	}
	if r.peakKiB > maxPeakKiB && !testutil.RaceEnabled {
		t.Errorf("a member has used %d MiB", r.peakKiB>>10)
	}
}

func (r *report) add(one report) {
	r.delivered += one.delivered
	r.lost += one.lost
	r.duplicated += one.duplicated
	r.catchUp = max(r.catchUp, one.catchUp)
	r.peakKiB = max(r.peakKiB, one.peakKiB)
}

func (r *report) String() string {
	return fmt.Sprintf("%d seeds, %d failed; %d messages delivered, %d lost, %d duplicated; worst catch-up %v, most memory %d MiB",
		r.seeds, r.failed, r.delivered, r.lost, r.duplicated, r.catchUp.Round(time.Millisecond), r.peakKiB>>10)
}

// soak runs a test with PLEACH_SEEDS seeds (one, unless told) from PLEACH_SEED on
// (1, unless told). The seed is what makes a run: the same one does the same
// things, as far as processes on a real system do anything twice.
func soak(t *testing.T, run func(t *testing.T, seed uint64) report) {
	t.Helper()
	var total report
	first, seeds := uint64(testutil.Seed.Or(1)), uint64(testutil.Seeds.Or(1))
	name := t.Name()
	for seed := first; seed < first+seeds; seed++ {
		total.seeds++
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("to replay: PLEACH_SEED=%d go test -count=1 -run '^%s$' .", seed, name)
				}
			})
			one := run(t, seed)
			one.check(t)
			total.add(one)
		})
		if !ok {
			total.failed++
		}
	}
	if seeds > 1 {
		fmt.Printf("%s: %v\n", name, &total)
	}
	t.Log(&total)
}
