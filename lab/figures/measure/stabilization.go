package main

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/bench/stabilization"
	"github.com/pleach-go/pleach/lab/figures"
)

// viewsOutput is what the commands print.
type viewsOutput struct {
	Results []stabilization.Result `json:"results"`
}

// viewsAfterKill measures a view after a member or the coordinator is killed.
func viewsAfterKill(l *lab) []figures.Table {
	t := figures.Table{Name: "kill", Columns: []string{
		"killed", "complete", "p50", "p99", "of that, detection p50",
		"stabilization p50",
	}}
	for _, k := range []struct{ what, flags string }{
		{"a member", "--kills 50"},
		{"the coordinator", "--kills 25 --coordinator"},
	} {
		var out viewsOutput
		l.measure(&out, "go run ./lab/cmd/pleach-lab bench stabilization --members 47 --json "+k.flags)
		for _, r := range out.Results {
			t.Rows = append(t.Rows, []string{
				k.what, fmt.Sprintf("%d of %d", r.Complete, r.Kills), millis(r.P50), millis(r.P99), millis(r.DetectionP50),
				millis(r.StabilizationP50),
			})
		}
	}
	return []figures.Table{t}
}

// viewsBesideGossip measures when the last survivor learns of a death, compared with memberlist and serf.
func viewsBesideGossip(l *lab) []figures.Table {
	var out viewsOutput
	l.measure(&out, "go -C lab/peers run ./convergence --members 47 --kills 4 --turns 1 --json")
	t := figures.Table{Name: "convergence", Columns: []string{"system", "complete", "p50", "longest"}}
	p50 := map[string]float64{}
	for _, r := range out.Results {
		t.Rows = append(t.Rows, []string{
			r.System, fmt.Sprintf("%d of %d", r.Complete, r.Kills), millis(r.P50),
			millis(r.Max),
		})
		p50[r.System] = r.P50
	}
	return []figures.Table{t, {Name: "readme", Columns: readmeColumns, Rows: [][]string{{
		"47 members: until all others know of a crash", millis(p50["pleach"]), "memberlist, tuned",
		millis(p50["memberlist-tuned"]),
	}}}}
}
