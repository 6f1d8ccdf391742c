package experiments

import (
	"context"
	"os"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// TestMain is also a process of a job, if [Overheads.Measure] starts this program
// as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[0] == "task" {
		if err := ServeTask(context.Background(), os.Args[1], os.Stdin, os.Stdout); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Every collective and phase is measured, and its results are right although a
// process dies.
func TestOverheads(t *testing.T) {
	for name, command := range map[string][]string{"goroutines": nil, "processes": {"task"}} {
		t.Run(name, func(t *testing.T) {
			if testutil.RaceEnabled && command != nil {
				t.Skip("processes share nothing")
			}
			o := Overheads{
				Members: []int{2, 4}, Rounds: 5, Fixed: 4, Sizes: []int{4, 4096}, Large: 1 << 16, Fewer: 2, Trials: 1, Seed: 1,
				Command: command,
			}
			last := 0.0
			o.Progress = func(share float64) { last = share }
			overheads, recoveries, err := o.Measure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(overheads) != 2*5+2+1 || len(recoveries) != 5*3 || last != 1 {
				t.Errorf("%d overheads, %d recoveries, %g of it done", len(overheads), len(recoveries), last)
			}
			for _, r := range overheads {
				if r.Overhead() <= 0 || r.Report.P50 <= 0 {
					t.Errorf("%+v", r)
				}
				t.Logf("%-9s P %2d, %7d bytes: run-through %.0f µs, report %.0f µs: %.2f", r.Call, r.Members, r.Bytes,
					r.RunThrough.P50, r.Report.P50, r.Overhead())
			}
			for _, r := range recoveries {
				if r.Time.P50 <= 0 || r.Normal.P50 <= 0 {
					t.Errorf("%+v", r)
				}
				t.Logf("%-9s dies %s: %.0f µs, normal %.0f µs", r.Call, r.Phase, r.Time.P50, r.Normal.P50)
			}
		})
	}
}

func TestOverheadsRefuseWhatCannotBe(t *testing.T) {
	for _, o := range []Overheads{
		{},
		{Members: []int{1}, Rounds: 1, Fewer: 1, Fixed: 2},
		{Members: []int{2}, Rounds: 1, Fewer: 1, Fixed: 1},
		{Members: []int{2}, Rounds: 0, Fewer: 1, Fixed: 2},
	} {
		if _, _, err := o.Measure(t.Context()); err == nil {
			t.Errorf("%+v", o)
		}
	}
	if err := ServeTask(t.Context(), "{", nil, nil); err == nil {
		t.Error("no plan is a plan")
	}
}
