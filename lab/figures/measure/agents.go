package main

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/figures"
)

// agentsBesideSerf measures agents of Pleach and of serf, which run at the same time.
func agentsBesideSerf(l *lab) []figures.Table {
	var out struct {
		Results []struct {
			System   string  `json:"system"`
			Events   int     `json:"events"`
			Complete int     `json:"events_complete"`
			Half     float64 `json:"event_half_p50_ms"`
			All      float64 `json:"event_all_p50_ms"`
			Dead     float64 `json:"dead_one_p50_ms"`
			RSS      float64 `json:"rss_mb"`
			Own      float64 `json:"rss_anon_mb"`
			Idle     float64 `json:"idle_cpu_percent"`
		} `json:"results"`
	}
	l.measure(&out, "go -C lab/peers run ./agents --members 50 --events 20 --kills 2 --idle 15s --json")
	t := figures.Table{Name: "agents", Columns: []string{
		"agent", "complete", "event to half, p50", "event to all, p50",
		"dead, p50", "memory", "own", "idle, of a core",
	}}
	for _, r := range out.Results {
		t.Rows = append(t.Rows, []string{
			r.System, fmt.Sprintf("%d of %d", r.Complete, r.Events), millis(r.Half), millis(r.All), millis(r.Dead),
			fmt.Sprintf("%.1f MB", r.RSS), fmt.Sprintf("%.1f MB", r.Own), fmt.Sprintf("%.2f%%", r.Idle),
		})
	}
	return []figures.Table{t}
}
