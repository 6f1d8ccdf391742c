package main

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/bench/sort"
	"github.com/pleach-go/pleach/lab/figures"
)

// sortBesideGNU compares a sort with GNU sort, and kills a process in each phase.
func sortBesideGNU(l *lab) []figures.Table {
	t := figures.Table{Name: "gnu", Columns: []string{
		"records", "processes", "trials", "pleach p50", "GNU sort p50",
		"of GNU sort", "processor time", "GNU sort",
	}}
	killed := figures.Table{Name: "killed", Columns: []string{
		"records", "processes", "killed in", "lost with takeover",
		"lost with a restart", "ratio", "same output",
	}}
	for _, g := range []struct{ records, members, trials int }{{3_000_000, 8, 3}, {3_000_000, 2, 3}} {
		var r sort.Result
		l.measure(&r, fmt.Sprintf(
			"go run ./lab/cmd/pleach-lab bench sort --records %d --members %d --trials %d --compare gnu --json", g.records,
			g.members, g.trials))
		job := []string{thousands(g.records), fmt.Sprint(g.members)}
		t.Rows = append(t.Rows, append(job, fmt.Sprint(g.trials), millis(r.Job), millis(r.GNU), ratio(r.OfGNU, 1),
			millis(r.JobCPU), millis(r.GNUCPU)))
		for _, p := range r.Killed {
			same := map[bool]string{true: "yes", false: "no"}[p.Equal]
			killed.Rows = append(killed.Rows, []string{
				job[0], job[1], p.Phase, millis(p.RunThrough), millis(p.Restart),
				ratio(p.RunThrough, p.Restart), same,
			})
		}
	}
	return []figures.Table{t, killed}
}
