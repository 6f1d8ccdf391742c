package experiments

import (
	"strconv"
	"testing"

	"github.com/pleach-go/pleach/lab/chart"
)

// The pictures of docs/research/findings.md are drawn from the golden file, anew by PLEACH_UPDATE_GOLDEN=1.
func TestCollectivesCharts(t *testing.T) {
	latency := collectiveChart("collectives-latency", chart.Axis{Label: "latency [steps]", To: 150})
	latency.Series = collectiveCurves(t, []collectiveCurve{
		{call: "allreduce", column: "latency", name: "log2 P hops (Barrier, Broadcast, …, Scan)"},
		{call: "reduce", f: 1, column: "latency", name: "corrected Reduce, f = 1"},
		{call: "reduce", f: 4, dead: 4, column: "latency", name: "corrected Reduce, f = 4, 4 dead"},
		{call: "allreduce", f: 1, column: "latency", name: "corrected Allreduce, f = 1"},
		{call: "allreduce", f: 4, dead: 4, column: "latency", name: "corrected Allreduce, f = 4, 4 dead"},
		{call: "allreduce", f: 1, column: "latency_model", name: "its longest path, f = 1"},
	})
	const messages = "messages_per_process"
	sent := collectiveChart("collectives-messages", chart.Axis{Label: "messages per process", To: 16})
	sent.Series = collectiveCurves(t, []collectiveCurve{
		{call: "allreduce", column: messages, name: "Allreduce, Barrier"},
		{call: "scan", column: messages, name: "Scan"},
		{call: "reduce", column: messages, name: "Reduce, Broadcast"},
		{call: "reduce", f: 1, column: messages, name: "corrected Reduce, f = 1"},
		{call: "reduce", f: 4, column: messages, name: "corrected Reduce, f = 4"},
		{call: "allreduce", f: 1, column: messages, name: "corrected Allreduce, f = 1"},
		{call: "allreduce", f: 4, column: messages, name: "corrected Allreduce, f = 4"},
	})
	for _, c := range []chart.Chart{latency, sent} {
		for _, s := range c.Series {
			if len(s.Points) != 7 {
				t.Errorf("%s: %q has %d points, not one for each of 2^4, 2^6, …, 2^16 processes", c.Name, s.Name, len(s.Points))
			}
		}
		checkDrawn(t, &c, collectivesGolden)
	}
}

func collectiveChart(name string, y chart.Axis) chart.Chart {
	return chart.Chart{
		Name: name, Title: "Collectives under LogP, L = 2, o = 1",
		X: chart.Axis{Label: "processes", Log: true, Ticks: chart.Powers(4, 16, 2)}, Y: y,
	}
}

// collectiveCurve is a column of some rows of the golden file.
type collectiveCurve struct {
	call         string
	f, dead      int
	column, name string
}

// collectiveCurves draws columns by the number of processes.
func collectiveCurves(t *testing.T, curves []collectiveCurve) (all []chart.Series) {
	t.Helper()
	rows := goldenRows(t, collectivesGolden)
	at := make(map[string]int)
	for i, column := range rows[0] {
		at[column] = i
	}
	for i, c := range curves {
		s := chart.Series{Name: c.name, Color: i}
		if c.column == "latency_model" {
			s.Kind = chart.Dashed
		}
		for _, row := range rows[1:] {
			if row[at["call"]] != c.call || row[at["corrected_for"]] != strconv.Itoa(c.f) ||
				row[at["dead"]] != strconv.Itoa(c.dead) {
				continue
			}
			s.Points = append(s.Points, chart.Point{X: number(t, row[at["processes"]]), Y: number(t, row[at[c.column]])})
		}
		all = append(all, s)
	}
	return all
}
