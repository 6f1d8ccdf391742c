package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/bench/stabilization"
	"github.com/pleach-go/pleach/lab/chart"
)

// Stabilization time of real processes over TCP, as in the membership thesis'
// Figures 6.3 and 6.9, on one machine.

func smProcesses() Experiment {
	return Experiment{
		Name: "sm-processes", Paper: membership,
		Title: "Stabilization time of real processes over TCP, a member killed",
		About: "The thesis measures clusters of 25 and 47 machines (Figures 6.3 and 6.9); here every member is a process on this machine, all share its cores, and one after the other is " +
			"killed with SIGKILL and started anew. Stabilization is from the first suspicion until the last survivor's program has the view. Views are agreed by a majority, " +
			"which takes more than twice the messages of the thesis' protocol, and here they all wait for the same cores: only how it grows means something.",
		Source: &Source{
			Name: "sm-processes", Seed: 1, Tables: []string{"times"},
			Cost: [sizes]float64{1, 6, 40}, measure: measureSurvivors,
		},
		charts: drawSurvivors, claims: judgeSurvivors,
	}
}

func measureSurvivors(j *job) (Data, error) {
	groups := []int{4, 8, 16, 25, 47}[:j.pick(1, 3, 5)]
	t := newTable("members", "kill_to_view_ms", "kill_to_view_p99_ms", "detection_ms", "stabilization_ms",
		"complete", "runs")
	for i, members := range groups {
		c := stabilization.Config{
			System: "pleach", Members: members, Kills: j.pick(2, 10, 40), Seed: j.seed,
			Command: j.Survivor,
		}
		c.Progress = func(done int) { j.done((float64(i) + float64(done)/float64(c.Kills)) / float64(len(groups))) }
		r, err := stabilization.Run(j.ctx, c)
		if err != nil {
			return nil, err
		}
		t.add(members, r.P50, r.P99, r.DetectionP50, r.StabilizationP50, r.Complete, r.Kills)
	}
	return Data{"times": t}, nil
}

func drawSurvivors(d Data) []chart.Chart {
	t := d["times"]
	c := chart.Chart{
		Name: "sm-processes", Title: "Stabilization of real processes on one machine",
		X: chart.Axis{Label: "members"}, Y: chart.Axis{Label: "median time [ms]"},
	}
	for i, curve := range []struct{ column, title string }{
		{"kill_to_view_ms", "kill to view"}, {"stabilization_ms", "stabilization"}, {"detection_ms", "detection"},
	} {
		c.Series = append(c.Series,
			chart.Series{Name: curve.title, Color: i, Points: t.points("members", curve.column, "", "")})
	}
	return []chart.Chart{c}
}

func judgeSurvivors(d Data) []Claim {
	t := d["times"]
	members, times := t.numbers("members"), t.numbers("stabilization_ms")
	last := len(times) - 1
	return []Claim{
		{
			where: "§3", Claim: "kills after which every survivor has a view without the dead member", Stated: "all",
			Measured: fmt.Sprintf("%.0f of %.0f", t.sum("complete"), t.sum("runs")),
			Verdict:  shown(t.sum("complete") == t.sum("runs")), Runs: t.runs(),
		},
		{
			where: "§6.1.3, Figure 6.9", Claim: "stabilization time over TCP grows with the number of members",
			Stated: "logarithmically",
			Measured: fmt.Sprintf("%.1f ms with %.0f members, %.1f ms with %.0f, on one machine", times[0], members[0],
				times[last], members[last]), Verdict: NotShown, Runs: t.runs(),
			Note: "all members share this machine's cores: every message of a change waits for them",
		},
	}
}
