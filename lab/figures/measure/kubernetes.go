package main

import (
	"fmt"
	"slices"

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

// kubernetesPair kills agents of a group of two with an arbiter, on the same cluster.
func kubernetesPair(l *lab) []figures.Table {
	var o struct {
		Deaths []struct {
			Leader     bool
			Alone, Key float64
		}
		Leaders  int `json:"two_leaders"`
		LostKeys int `json:"lost_keys"`
		Stop     struct {
			Stopped, Continued float64
			Refused, Accepted  int
		}
	}
	l.measure(&o, "bin/cluster/bin/kubernetes run bin/cluster pair --json")
	deaths := figures.Table{Name: "pair", Columns: []string{
		"SIGKILL of", "times", "alone in the view, median", "slowest", "key written, median", "slowest key",
	}}
	for _, leader := range []bool{true, false} {
		var alone, key []float64
		for _, d := range o.Deaths {
			if d.Leader == leader {
				alone, key = append(alone, d.Alone), append(key, d.Key)
			}
		}
		if len(alone) == 0 {
			continue
		}
		who := "the other agent"
		if leader {
			who = "the leader"
		}
		deaths.Rows = append(deaths.Rows, []string{
			who, fmt.Sprint(len(alone)), milliseconds(median(alone)), milliseconds(slices.Max(alone)), milliseconds(median(key)),
			milliseconds(slices.Max(key)),
		})
	}
	checks := figures.Table{Name: "pair-checks", Columns: []string{
		"times of two leaders", "keys lost", "without the API server: no quorum after", "writes refused", "writes accepted",
		"key written after the API server is ready",
	}, Rows: [][]string{{
		fmt.Sprint(o.Leaders), fmt.Sprint(o.LostKeys), milliseconds(o.Stop.Stopped), thousands(o.Stop.Refused),
		fmt.Sprint(o.Stop.Accepted), milliseconds(o.Stop.Continued),
	}}}
	return []figures.Table{deaths, checks}
}

// milliseconds prints a number of seconds.
func milliseconds(seconds float64) string { return thousands(int(1000*seconds+0.5)) + " ms" }
