package experiments

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// forms are the ways to run jobs in tests.
func forms(t *testing.T, test func(t *testing.T, command []string)) {
	for name, command := range map[string][]string{"goroutines": nil, "processes": {"task"}} {
		t.Run(name, func(t *testing.T) {
			if testutil.RaceEnabled && command != nil {
				t.Skip("processes share nothing")
			}
			test(t, command)
		})
	}
}

// Query 3 ends with the right result whichever phase a process dies in, and one partition
// is restored for it.
func TestQueries(t *testing.T) {
	forms(t, func(t *testing.T, command []string) {
		q := Queries{Members: 3, Scale: 0.002, Trials: 2, Seed: 1, Command: command}
		rows, roots, err := q.Measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 2*(3+2*phases+1) || len(roots) != 4 {
			t.Errorf("%d rows, %d of roots", len(rows), len(roots))
		}
		for _, r := range rows {
			t.Logf("%-11s %s, P %d, phase %d: %.0f ms, %d restored in %d trials", r.Approach, r.Data, r.Members, r.Phase,
				r.Time.P50, r.Restored, r.Trials)
			if deaths := r.Trials * min(r.Phase, 1); (r.Approach == RunThrough || r.Approach == Optimized) &&
				r.Restored != deaths {
				t.Errorf("%d partitions were restored for %d dead: %+v", r.Restored, deaths, r)
			}
		}
		for _, r := range roots {
			if r.Call == "allreduce" && r.Returned != r.Trials {
				t.Errorf("no survivor has the result: %+v", r)
			}
			t.Logf("root dies %s %s: returned in %d, taken over in %d of %d", r.Moment, r.Call, r.Returned, r.TakenOver,
				r.Trials)
		}
	})
}

// Whichever process dies in whichever phase, all survivors have the right result.
func TestQueryWithEveryVictim(t *testing.T) {
	const members = 3
	trials, err := newQueryTrials(&Queries{Members: members, Scale: 0.002}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, approach := range []string{RunThrough, Optimized} {
		for phase := phaseGather; phase <= phaseJoin; phase++ {
			for victim := range members {
				if _, err := trials.complete(t.Context(), applicationCase{approach, Generated, phase}, victim); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// Partitions in files are those that are generated.
func TestPartitionFiles(t *testing.T) {
	d := dataset{Scale: 0.002, Members: 2, Directory: t.TempDir()}
	if err := d.write(); err != nil {
		t.Fatal(err)
	}
	for task := range d.Members {
		want, err := d.generate(task)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.load(task)
		if err != nil {
			t.Fatal(err)
		}
		keys := want.filter()
		if !slices.Equal(got.filter(), keys) || got.join(keys) != want.join(keys) || want.join(keys) == (topTen{}) {
			t.Errorf("partition %d differs", task)
		}
	}
	if err := os.Truncate(d.file(1), 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := d.load(1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that ends too early: %v", err)
	}
}

func TestApplicationsRefuseWhatCannotBe(t *testing.T) {
	for _, q := range []Queries{{}, {Members: 1, Trials: 1}, {Members: 2}, {Members: 2, Trials: 1, Scale: 1e-9}} {
		if _, _, err := q.Measure(t.Context()); err == nil {
			t.Errorf("%+v", q)
		}
	}
	for _, s := range []Sorts{{}, {Members: 1, Records: 1, Trials: 1}, {Members: 2, Records: 1}, {Members: 2, Trials: 1}} {
		if _, err := s.Measure(t.Context()); err == nil {
			t.Errorf("%+v", s)
		}
	}
	if err := ServeTask(t.Context(), "{}", nil, nil); err == nil {
		t.Error("a plan without a program")
	}
}

// Sample sort ends with the right output whichever phase a process dies in.
func TestSorts(t *testing.T) {
	forms(t, func(t *testing.T, command []string) {
		s := Sorts{Members: 3, Records: 2000, Trials: 1, Seed: 1, Command: command}
		rows, err := s.Measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 2*(1+2*phases) {
			t.Errorf("%d rows", len(rows))
		}
		for _, r := range rows {
			t.Logf("%-11s %s, P %d, phase %d: %.0f ms", r.Approach, r.Data, r.Members, r.Phase, r.Time.P50)
		}
	})
}
