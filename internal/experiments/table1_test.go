package experiments

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/testutil"
)

// table1Printed is Table 1 of Corrected Trees: "cost of correction under faults
// aggregated for all tree types".
var table1Printed = []struct{ gap99, gap999, gapMax, time99, time999, timeMax float64 }{
	{1, 2, 3, 10, 12, 14},
	{2, 3, 6, 12, 13, 16},
	{5, 7, 19, 16, 19, 32},
	{8, 11, 35, 19, 24, 56},
	{13, 20, 55, 26, 34, 86},
}

const (
	table1Golden = "testdata/table1.txt"
	table1Size   = 65536
	table1Runs   = 2000
	table1Seed   = 1
)

// writeTable1 is the golden file: the columns of the paper, and what else the
// runs must show.
func writeTable1(rows []Table1Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Corrected Trees, Table 1: P = %d, L = 2, o = 1, %d runs per shape and rate, seed %d.\n", table1Size, table1Runs, table1Seed)
	fmt.Fprintf(&b, "# rate | gap 99%% 99.9%% max | time 99%% 99.9%% max | runs, outside Lemma 3, with unreached, gap > 10 | first runs of each shape\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "%g%% | %g %g %g | %g %g %g | %d %d %d %d |%s\n", r.Rate*100,
			r.Gap.P99, r.Gap.P999, r.Gap.Max, r.Time.P99, r.Time.P999, r.Time.Max,
			r.Runs, r.OutsideLemma3, r.UnreachedRuns, r.GapOverTen, r.FirstRunDigest)
	}
	for _, r := range rows {
		for _, shape := range Table1Shapes(2, 1) {
			d := r.ByShape[shape.String()]
			fmt.Fprintf(&b, "quiescence %g%% %s: mean %.2f stddev %.2f\n", r.Rate*100, shape, d.Mean, d.StdDev)
		}
	}
	return b.String()
}

// The golden file is what Table1 computes: all of it in a full run, its first
// runs always.
func TestTable1Golden(t *testing.T) {
	runs := table1Digested
	if testutil.Full.On() {
		runs = table1Runs
	}
	if testutil.RaceEnabled {
		t.Skip("long, and logp's tests cover sharing")
	}
	rows, err := Table1(context.Background(), table1Size, runs, table1Seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if testutil.UpdateGolden.On() && testutil.Full.On() {
		if err := os.WriteFile(table1Golden, []byte(writeTable1(rows)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(table1Golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := writeTable1(rows); testutil.Full.On() && got != string(golden) {
		t.Errorf("computed:\n%s\nrecorded:\n%s", got, golden)
	}
	for _, r := range rows {
		if !strings.Contains(string(golden), "|"+r.FirstRunDigest+"\n") {
			t.Errorf("rate %g%%: the first runs show%s, which is not what is recorded in %s", r.Rate*100, r.FirstRunDigest, table1Golden)
		}
	}
}

// Corrected Trees §4.3, Table 1: the recorded percentiles are within one of the
// printed ones, and no run broke Lemma 3 or missed a process.
func TestTable1AgreesWithPaper(t *testing.T) {
	golden, err := os.ReadFile(table1Golden)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(golden)) {
		if strings.Contains(line, "% |") && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if len(lines) != len(table1Printed) {
		t.Fatalf("%d rates are recorded", len(lines))
	}
	for i, line := range lines {
		var rate, gap99, gap999, gapMax, time99, time999, timeMax float64
		var runs, outside, unreached, overTen int
		if _, err := fmt.Sscanf(line, "%g%% | %g %g %g | %g %g %g | %d %d %d %d |", &rate,
			&gap99, &gap999, &gapMax, &time99, &time999, &timeMax, &runs, &outside, &unreached, &overTen); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want := table1Printed[i]
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"gap 99%", gap99, want.gap99},
			{"gap 99.9%", gap999, want.gap999},
			{"time 99%", time99, want.time99},
			{"time 99.9%", time999, want.time999},
		} {
			if math.Abs(c.got-c.want) > 1 {
				t.Errorf("%g%% dead: %s is %g, printed %g", rate, c.what, c.got, c.want)
			}
		}
		if runs != 4*table1Runs || outside != 0 || unreached != 0 {
			t.Errorf("%g%% dead: %d runs, %d outside Lemma 3, %d with unreached processes", rate, runs, outside, unreached)
		}
	}
}
