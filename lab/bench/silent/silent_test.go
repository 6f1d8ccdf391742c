package silent

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// TestMain is also a member: the test's own program is started for each of them.
func TestMain(m *testing.M) {
	i := slices.IndexFunc(Builtin(), func(s System) bool { return s.Name == os.Args[len(os.Args)-1] })
	if i < 0 {
		os.Exit(m.Run())
	}
	if err := Serve(context.Background(), Builtin()[i]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// An inner member of the tree dies silently, and all live members still have every message
// after about one tree depth and a few steps of correction (corrected trees, § 3): ratios to
// the time before, of one run. Other load may disturb a run, so one of three has to hold, and
// the bounds are wider than what a quiet host shows; waits of 200 ms exceed them far.
func TestSilentDeathCostsOneCorrection(t *testing.T) {
	for _, silent := range [][]int{{1}, {2}, {1, 2}} {
		t.Run(fmt.Sprint(silent), func(t *testing.T) {
			for try := 1; ; try++ {
				results, err := Run(t.Context(), Config{
					Systems: []string{"pleach"}, Command: []string{os.Args[0]}, Members: 16, Silent: silent,
					Interval: 20 * time.Millisecond, Size: 64, Before: time.Second, After: 2 * time.Second, Runs: 1,
				})
				if err != nil {
					t.Fatal(err)
				}
				r := results[0]
				t.Logf("%+v", r)
				if r.Incomplete > 0 || r.Sent < 20 {
					t.Fatalf("%d of %d messages are incomplete", r.Incomplete, r.Sent)
				}
				if r.MedianMS <= 3*r.BeforeMS && r.FirstMS <= 30*r.BeforeMS {
					return
				}
				if try == 3 {
					t.Fatalf("%.1f ms before, and past silent members %.1f, %.1f in the median", r.BeforeMS, r.FirstMS, r.MedianMS)
				}
			}
		})
	}
}

// The bare tree never reaches those below a silent member, and the measurement says so.
func TestBareTreeDoesNotReachAll(t *testing.T) {
	results, err := Run(t.Context(), Config{
		Systems: []string{"bare"}, Command: []string{os.Args[0]}, Members: 8, Silent: []int{1},
		Interval: 20 * time.Millisecond, Size: 64, Before: time.Second, After: time.Second, Runs: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := results[0]; r.Incomplete != r.Sent || r.Sent == 0 || r.BeforeMS == 0 {
		t.Errorf("%+v", r)
	}
}

// Times, rates and losses come from what members report.
func TestEvaluate(t *testing.T) {
	const ms = int64(time.Millisecond)
	c := &Config{Members: 4, Silent: []int{2}, Interval: 10 * time.Millisecond, After: time.Second}
	views := []seen{{4, 1}, {3, 100 * ms}}
	reports := map[int]report{
		0: {Sent: []int64{10 * ms, 20 * ms, 40 * ms, 60 * ms, 120 * ms}},
		1: {Took: []int64{ms, 2 * ms, 3 * ms, 9 * ms, ms}, Views: views, Received: [3]uint64{0, 4, 10}},
		3: {Took: []int64{2 * ms, ms, 7 * ms, -1, ms}, Views: views, Received: [3]uint64{0, 4, 10}},
	}
	got := evaluate(c, "x", 35*ms, reports)
	want := Result{
		System: "x", Members: 4, Silent: []int{2}, ViewMS: 65, BeforeMS: 2, FirstMS: 7, MedianMS: 7, WorstMS: 7, Sent: 2,
		Incomplete:     1,
		MessagesBefore: 1.33, MessagesAfter: 3,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, not %+v", got, want)
	}
	c.Interval, c.Before = 0, 100*time.Millisecond
	full := report{Buckets: make([]uint64, 50), Views: []seen{{3, 300 * ms}}}
	for i := range full.Buckets {
		full.Buckets[i] = 100
		if i >= 20 {
			full.Buckets[i] = 50
		}
		full.Count += full.Buckets[i]
	}
	behind := full
	behind.Count--
	got = evaluate(c, "x", 200*ms, map[int]report{0: {Next: full.Count}, 1: full, 3: behind})
	if got.RateBefore != 10_000 || got.RateAfter != 5_000 || got.Lost != 1 {
		t.Errorf("%+v", got)
	}
}
