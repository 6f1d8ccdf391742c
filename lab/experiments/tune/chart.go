package tune

import (
	"slices"
	"strings"

	"github.com/pleach-go/pleach/lab/chart"
)

// Chart draws the trade-off: latency over messages, a point for each option
// that was simulated and is reliable enough.
func (a *Answer) Chart(title string) *chart.Chart {
	c := &chart.Chart{
		Name: "tune", Title: title,
		X: chart.Axis{Label: "messages per process"}, Y: chart.Axis{Label: "mean quiescence latency [steps]"},
	}
	var broadcasts, rules []string // a color and a mark each
	for i := range a.Options {
		o := &a.Options[i]
		if o.Runs == 0 || !o.Meets {
			continue
		}
		rule, _, _ := strings.Cut(o.Correction, ":")
		c.Series = append(c.Series, chart.Series{
			Name: o.Name(), Kind: chart.Dots, Color: number(&broadcasts, o.Broadcast), Mark: 1 + number(&rules, rule),
			Points: []chart.Point{{X: o.Messages, Y: o.Latency}},
		})
	}
	c.X.From, c.X.To = 0, 1
	for _, s := range c.Series {
		c.X.To, c.Y.To = max(c.X.To, 1.1*s.Points[0].X), max(c.Y.To, 1.1*s.Points[0].Y)
	}
	return c
}

// number is a word's place among those seen so far.
func number(words *[]string, word string) int {
	if !slices.Contains(*words, word) {
		*words = append(*words, word)
	}
	return slices.Index(*words, word)
}
