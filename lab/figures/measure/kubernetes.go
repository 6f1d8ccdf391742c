package main

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/figures"
)

// kubernetesScenarios runs the manifests on the cluster that make cluster has started.
func kubernetesScenarios(l *lab) []figures.Table {
	t := figures.Table{Name: "scenarios", Columns: []string{
		"scenario", "ready after", "messages", "lost", "duplicated", "gap events", "longest without quorum", "keys lost",
		"fencing tokens that fell", "restarts",
	}}
	var all []struct {
		Name                                     string
		Seconds                                  float64
		Sent, Lost, Duplicated, Missed, Restarts int
		NoQuorum                                 float64 `json:"no_quorum"`
		LostKeys                                 int     `json:"lost_keys"`
		Fallen                                   int     `json:"fallen_tokens"`
		Error                                    string
	}
	l.measure(&all, "bin/cluster/bin/kubernetes run bin/cluster --json")
	for _, s := range all {
		name := s.Name
		if s.Error != "" {
			name += ": " + s.Error
		}
		t.Rows = append(t.Rows, []string{
			name, fmt.Sprintf("%.0f s", s.Seconds), thousands(s.Sent), fmt.Sprint(s.Lost), fmt.Sprint(s.Duplicated),
			fmt.Sprint(s.Missed), fmt.Sprintf("%.1f s", s.NoQuorum), fmt.Sprint(s.LostKeys), fmt.Sprint(s.Fallen),
			fmt.Sprint(s.Restarts),
		})
	}
	return []figures.Table{t}
}
