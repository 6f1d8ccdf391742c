package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/internal/bench/stabilization"
	"github.com/pleach-go/pleach/internal/figures"
)

// viewsOutput is what the commands print.
type viewsOutput struct {
	Results []stabilization.Result `json:"results"`
}

// viewsAfterKill measures a view after a member or the coordinator is killed.
func viewsAfterKill(l *lab) []figures.Table {
	t := figures.Table{Name: "kill", Columns: []string{"killed", "complete", "p50", "p99", "of that, detection p50", "stabilization p50"}}
	for _, k := range []struct{ what, flags string }{
		{"a member", "--kills 50"},
		{"the coordinator", "--kills 25 --coordinator"},
	} {
		var out viewsOutput
		l.measure(&out, "go run ./cmd/pleach-lab bench stabilization --members 47 --json "+k.flags)
		for _, r := range out.Results {
			t.Rows = append(t.Rows, []string{
				k.what, fmt.Sprintf("%d of %d", r.Complete, r.Kills), millis(r.P50), millis(r.P99), millis(r.DetectionP50), millis(r.StabilizationP50),
			})
		}
	}
	return []figures.Table{t}
}

// viewsBesideGossip measures when the last survivor knows of a death, beside memberlist and serf.
func viewsBesideGossip(l *lab) []figures.Table {
	var out viewsOutput
	l.measure(&out, "go -C bench/peers run ./convergence --members 47 --kills 4 --turns 1 --json")
	t := figures.Table{Name: "convergence", Columns: []string{"system", "complete", "p50", "longest"}}
	var beside []string
	for _, r := range out.Results {
		t.Rows = append(t.Rows, []string{r.System, fmt.Sprintf("%d of %d", r.Complete, r.Kills), millis(r.P50), millis(r.Max)})
		if r.System != "pleach" {
			beside = append(beside, r.System+" "+millis(r.P50))
		}
	}
	var own stabilization.Result
	if i := slices.IndexFunc(out.Results, func(r stabilization.Result) bool { return r.System == "pleach" }); i >= 0 {
		own = out.Results[i]
	}
	return []figures.Table{t, {Name: "readme", Columns: readmeColumns, Rows: [][]string{{
		"a refusing member is out of the view of 46 others; a silent one after 1.5 s", millis(own.P50), strings.Join(beside, "; "),
	}}}}
}
