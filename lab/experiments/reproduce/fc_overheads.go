package reproduce

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
)

// The collectives thesis' Figures 5.3 to 5.14: what fault tolerance costs a
// collective as long as no process fails; and how long one takes in which a process
// dies, which the thesis shows for a whole query only.

const collectives = "Fault Tolerant Collectives (thesis, 2017)"

// overheadRuns is the source of all of them.
func overheadRuns() *Source {
	return &Source{
		Name: "fc-overheads", Seed: 1, Tables: []string{"overhead", "recovery"},
		Cost: [sizes]float64{2, 20, 150}, measure: measureOverheads,
	}
}

func measureOverheads(j *job) (Data, error) {
	o := experiments.Overheads{
		Members: []int{4, 8, 16}[:j.pick(1, 3, 3)], Rounds: j.pick(5, 150, 1000),
		Fixed: j.pick(4, 8, 8), Sizes: []int{4, 1 << 10, 1 << 16, 1 << 20}[:j.pick(2, 4, 4)],
		Large: j.pick(1<<14, 4<<20, 4<<20),
		Fewer: j.pick(2, 20, 100), Trials: j.pick(1, 3, 11), Seed: j.seed, Progress: j.done, Command: j.Task,
	}
	overheads, recoveries, err := o.Measure(j.ctx)
	if err != nil {
		return nil, err
	}
	t := newTable("call", "members", "bytes", "run_through_p50_us", "run_through_mean_us", "plain_p50_us", "plain_mean_us",
		"overhead", "runs")
	for i := range overheads {
		r := &overheads[i]
		t.add(r.Call, r.Members, r.Bytes, r.RunThrough.P50, r.RunThrough.Mean, r.Report.P50, r.Report.Mean, r.Overhead(),
			r.Rounds)
	}
	u := newTable("call", "phase", "members", "recovery_p50_us", "recovery_max_us", "normal_p50_us", "runs")
	for _, r := range recoveries {
		u.add(r.Call, r.Phase, r.Members, r.Time.P50, r.Time.Max, r.Normal.P50, r.Trials)
	}
	return Data{"overhead": t, "recovery": u}, nil
}

// overheadFigure is a collective's figures.
type overheadFigure struct {
	name, call, title, figures string
	// stated is the factor that fault tolerance costs, in words and as a
	// number; 0: the text has none.
	words  string
	stated float64
	note   string
}

const scatterNote = "; of the two averages the text has, the quotient is the factor of fault tolerance, while its conclusion, that reimplementing costs most, would make it the smaller one"

func overheadFigures() []overheadFigure {
	return []overheadFigure{
		{"fc-figure-5.3", "broadcast", "Broadcast", "Figures 5.3 to 5.5", "4.60", 4.60, ""},
		{"fc-figure-5.6", "scatter", "Scatter", "Figures 5.6 and 5.7", "3.74 (4.90 by 1.31)", 3.74, scatterNote},
		{"fc-figure-5.8", "gather", "Gather", "Figures 5.8 and 5.9", "3.95 (5.09 by 1.29)", 3.95, scatterNote},
		{"fc-figure-5.10", "reduce", "Reduce", "Figures 5.10 and 5.11", "1.34", 1.34, ""},
		{"fc-figure-5.12", "alltoall", "All-to-all", "Figures 5.12 to 5.14", "", 0, ""},
	}
}

const overheadsAbout = "The thesis measures 16 to some hundred processes of a cluster over InfiniBand; here all share this machine's cores, and messages go over TCP, so only ratios mean something. " +
	"A round is timed as in the thesis (§5.1): barrier, collective, barrier, with 4 bytes per process. Run-through calls and the same ones of the strength that only reports failures, " +
	"and keeps nothing for takeovers, take turns. Its comparison with MPI is that of \"pleach-lab bench collectives\"."

func (f overheadFigure) experiment(runs *Source) Experiment {
	return Experiment{
		Name: f.name, Paper: collectives, Title: f.title + " with and without fault tolerance, nobody failing",
		About: overheadsAbout, Source: runs, charts: f.draw, claims: f.judge,
	}
}

// small are the rows with four bytes, in jobs of all sizes; the larger ones, if
// any, have a size of job of their own.
func (f overheadFigure) small(d Data) *Table {
	t := d["overhead"].where("call", f.call).where("bytes", 4)
	if f.call == "broadcast" { // whose last row is the first of Figure 5.5
		t.Rows = t.Rows[:len(t.Rows)-1]
	}
	return t
}

// bySize are the broadcasts of Figure 5.5, or the all-to-alls of Figure 5.14.
func (f overheadFigure) bySize(d Data) *Table {
	t := d["overhead"].where("call", f.call)
	t.Rows = t.Rows[len(f.small(d).Rows):]
	return t
}

func (f overheadFigure) draw(d Data) []chart.Chart {
	runtime := func(name, title string, t *Table, x string, axis chart.Axis) chart.Chart {
		y := chart.Axis{Label: "median time [µs]", Log: x == "bytes"}
		if !y.Log {
			y.To = 1.05 * slices.Max(slices.Concat(t.numbers("run_through_p50_us"), t.numbers("plain_p50_us")))
		}
		return chart.Chart{
			Name: name, Title: title, X: axis, Y: y,
			Series: []chart.Series{
				{Name: "fault-tolerant (runs through)", Color: 0, Points: t.points(x, "run_through_p50_us", "", "")},
				{Name: "without fault tolerance", Color: 1, Points: t.points(x, "plain_p50_us", "", "")},
			},
		}
	}
	processes := chart.Axis{Label: "processes", Log: true, Ticks: chart.Powers(2, 4, 1)}
	charts := []chart.Chart{
		runtime(f.name, f.title+", 4 bytes per process", f.small(d), "members", processes),
		{
			Name: f.name + "-overhead", Title: f.title + ", factor of fault tolerance", X: processes,
			Y:      chart.Axis{Label: "with ∕ without", From: 0, To: 5},
			Series: []chart.Series{{Name: "here", Color: 0, Points: f.small(d).points("members", "overhead", "", "")}},
		},
	}
	if f.stated > 0 {
		charts[1].Series = append(charts[1].Series, chart.Series{
			Name: "average in the thesis", Kind: chart.Rule, Color: 2,
			Points: []chart.Point{{Y: f.stated}},
		})
	}
	if t := f.bySize(d); f.call == "broadcast" {
		charts = append(charts, runtime(f.name+"-sizes", f.title+" by size of message", t,
			"bytes", chart.Axis{Label: "bytes", Log: true, Ticks: chart.Powers(2, 20, 6)}))
	}
	return charts
}

func (f overheadFigure) judge(d Data) []Claim {
	t := f.small(d)
	factors := t.numbers("overhead")
	mean := t.sum("overhead") / float64(len(factors))
	var claims []Claim
	if f.stated > 0 {
		claims = append(claims, Claim{
			where: "§5.2, " + f.figures, Claim: f.title + ": average factor that fault tolerance costs while nobody fails",
			Stated:   f.words,
			Measured: fmt.Sprintf("%s (%s by size of job)", times(mean), span(times, factors...)),
			Verdict:  verdict(mean > 0.9*f.stated), Runs: t.runs(),
			Note: "the thesis agrees on the outcome after every collective; here senders keep what they have sent, and nothing more is sent as long as nobody fails" + f.note,
		})
	}
	switch u := f.bySize(d); f.call {
	case "broadcast":
		all := u.numbers("overhead")
		claims = append(claims, Claim{
			where: "§5.2.2, Figure 5.5", Claim: "Broadcast: the factor of fault tolerance by size of message (4 bytes to 1 MiB)",
			Stated:   "almost constant",
			Measured: span(times, all...), Verdict: shown(slices.Max(all)-slices.Min(all) < 0.5), Runs: u.runs(),
		})
	case "alltoall":
		claims = append(claims, Claim{
			where:    "§5.2.6, Figures 5.12 and 5.14",
			Claim:    "All-to-all: the factor of fault tolerance is small, with 4 bytes and with 4 MB per process",
			Stated:   "not as high as that of reimplementing",
			Measured: fmt.Sprintf("%s, %s", times(mean), times(u.number("overhead"))),
			Verdict:  shown(mean < 1.5 && u.number("overhead") < 1.5), Runs: t.runs() + u.runs(),
			Note: "the text has no figure for it",
		})
	}
	return claims
}

// recovery is beyond the figures: a single collective in which a process dies.
func recovery(runs *Source) Experiment {
	return Experiment{
		Name: "fc-recovery", Paper: collectives, Title: "Collectives in which a random process dies",
		About: "In a round as those of the figures, a random process dies before the collective, at a random moment of the round, or right after the collective. The survivors find out, " +
			"agree on a view without it, and one of them does its part. The time is the last survivor's, until the barrier after the collective; all results are compared with those without failures.",
		Source: runs, charts: drawRecovery, claims: judgeRecovery,
	}
}

func drawRecovery(d Data) []chart.Chart {
	t := d["recovery"]
	c := chart.Chart{
		Name: "fc-recovery", Title: "Collectives in which a process dies",
		Y: chart.Axis{Label: "median time [ms]"},
	}
	for _, f := range overheadFigures() {
		c.Categories = append(c.Categories, f.title)
	}
	for i, phase := range []string{"before", "during", "after"} {
		s := chart.Series{Name: "dies " + phase + " it", Kind: chart.Bars, Color: i}
		for x, v := range t.where("phase", phase).numbers("recovery_p50_us") {
			s.Points = append(s.Points, chart.Point{X: float64(x), Y: v / 1000})
		}
		c.Series = append(c.Series, s)
	}
	return []chart.Chart{c}
}

func judgeRecovery(d Data) []Claim {
	t := d["recovery"]
	milliseconds := func(v float64) string { return fmt.Sprintf("%.1f", v/1000) }
	return []Claim{{
		where: "§5.2.1", Claim: "results of collectives in which a process is killed, compared with those without failures",
		Stated: "equal",
		Measured: fmt.Sprintf("equal in %d of %d, after %s ms (medians by collective and moment)", t.runs(), t.runs(),
			span(milliseconds, t.numbers("recovery_p50_us")...)),
		Verdict: Agrees, Runs: t.runs(),
		Note: "a wrong result would have ended the measurement",
	}}
}
