package testutil

import (
	"fmt"
	"testing"
	"time"
)

// SoakReport has the results of one run, or of many.
type SoakReport struct {
	Seeds, Failed, Delivered, Lost, Duplicated int
	CatchUp                                    time.Duration // the longest
	PeakKiB                                    int           // the most of any member
}

// maxPeakKiB bounds a member's memory. It is generous: here a member keeps about
// 30 MiB for others, and Go's collector as much again.
const maxPeakKiB = 256 << 10

// Check fails the test if a promise was broken.
func (r *SoakReport) Check(t *testing.T) {
	t.Helper()
	if r.Lost > 0 || r.Duplicated > 0 {
		t.Errorf("%d messages lost, %d duplicated", r.Lost, r.Duplicated)
	}
	if r.PeakKiB > maxPeakKiB && !RaceEnabled {
		t.Errorf("a member has used %d MiB", r.PeakKiB>>10)
	}
}

func (r *SoakReport) add(one SoakReport) {
	r.Delivered += one.Delivered
	r.Lost += one.Lost
	r.Duplicated += one.Duplicated
	r.CatchUp = max(r.CatchUp, one.CatchUp)
	r.PeakKiB = max(r.PeakKiB, one.PeakKiB)
}

func (r *SoakReport) String() string {
	return fmt.Sprintf("%d seeds, %d failed; %d messages delivered, %d lost, %d duplicated; worst catch-up %v, most memory %d MiB",
		r.Seeds, r.Failed, r.Delivered, r.Lost, r.Duplicated, r.CatchUp.Round(time.Millisecond), r.PeakKiB>>10)
}

// Soak runs a test with PLEACH_SEEDS seeds (one, unless told) from PLEACH_SEED on
// (1, unless told). The seed is what makes a run: the same one does the same
// things, as far as processes on a real system do anything twice.
func Soak(t *testing.T, run func(t *testing.T, seed uint64) SoakReport) {
	t.Helper()
	var total SoakReport
	first, seeds := uint64(Seed.Or(1)), uint64(Seeds.Or(1))
	name := t.Name()
	for seed := first; seed < first+seeds; seed++ {
		total.Seeds++
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("to replay: PLEACH_SEED=%d go test -count=1 -run '^%s$' .", seed, name)
				}
			})
			one := run(t, seed)
			one.Check(t)
			total.add(one)
		})
		if !ok {
			total.Failed++
		}
	}
	if seeds > 1 {
		fmt.Printf("%s: %v\n", name, &total)
	}
	t.Log(&total)
}
