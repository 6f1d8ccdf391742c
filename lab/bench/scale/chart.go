package scale

import (
	"math"
	"strconv"

	"github.com/pleach-go/pleach/lab/chart"
)

// Chart draws what a member costs by the number of members, over logarithmic axes: a
// cost that stays the same is a level line. Of several numbers of kills it shows the
// first.
func Chart(results []Result) *chart.Chart {
	c := &chart.Chart{
		Name: "scale", Title: "Costs of a member, by the number of members",
		X: chart.Axis{Label: "members", Log: true}, Y: chart.Axis{Label: "per member", Log: true},
	}
	costs := []struct {
		name string
		kind chart.Kind
		of   func(*Result) float64
	}{
		{"heap [kB]", chart.Line, func(r *Result) float64 { return r.HeapKB }},
		{"view change, CPU [µs]", chart.Line, func(r *Result) float64 { return r.ViewCPU }},
		{"view change, frames", chart.Line, func(r *Result) float64 { return r.ViewFrames }},
		{"broadcast, CPU [µs]", chart.Line, func(r *Result) float64 { return r.CPU }},
		{"bare broadcast, CPU [µs]", chart.Dashed, func(r *Result) float64 { return r.BareCPU }},
		{"broadcast, messages", chart.Line, func(r *Result) float64 { return r.Messages }},
		{"connections", chart.Line, func(r *Result) float64 { return r.Connections }},
	}
	low, high := math.Inf(1), 0.0
	for i, cost := range costs {
		s := chart.Series{Name: cost.name, Kind: cost.kind, Color: i}
		for j := range results {
			r := &results[j]
			if y := cost.of(r); y > 0 && firstOfSize(results, j) {
				s.Points = append(s.Points, chart.Point{X: float64(r.Members), Y: y})
				low, high = min(low, y), max(high, y)
			}
		}
		if len(s.Points) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	for j := range results {
		if n := results[j].Members; firstOfSize(results, j) {
			c.X.Ticks = append(c.X.Ticks, chart.Tick{Value: float64(n), Label: strconv.Itoa(n)})
		}
	}
	c.Y.Ticks = decades(low, high)
	if len(c.Y.Ticks) > 0 {
		c.Y.From, c.Y.To = c.Y.Ticks[0].Value, c.Y.Ticks[len(c.Y.Ticks)-1].Value
	}
	return c
}

// firstOfSize reports whether a result is the first of its size.
func firstOfSize(results []Result, i int) bool {
	return i == 0 || results[i-1].Members != results[i].Members
}

// decades are ticks at the powers of ten around values.
func decades(low, high float64) (ticks []chart.Tick) {
	if high <= 0 {
		return nil
	}
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		v := math.Pow(10, e)
		ticks = append(ticks, chart.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', -1, 64)})
	}
	return ticks
}
