package reproduce

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Corrected Trees' Figure 5: a Lamé tree's messages over time.

func figure5() Experiment {
	return Experiment{
		Name: "ct-figure-5", Paper: trees,
		Title: "Timeline of a Lamé tree, k = 3, P = 9, L = o = 1",
		About: "Nothing is random: one run, without correction.",
		Source: &Source{
			Name: "ct-figure-5", Seed: 1, Tables: []string{"messages"},
			Cost: [sizes]float64{0.01, 0.01, 0.01}, measure: measureFigure5,
		},
		charts: drawFigure5, claims: judgeFigure5,
	}
}

func measureFigure5(j *job) (Data, error) {
	t := newTable("shape", "from", "to", "sent", "received", "runs")
	for _, shape := range []topology.Shape{topology.Lame(3), topology.Optimal(1, 1)} {
		s := experiments.Scenario{
			Size: 9, L: 1, O: 1, Dissemination: "tree", Shape: shape, Correction: "none", Runs: 1, Seed: j.seed,
		}
		sent := map[protocol.Rank]protocol.Time{}
		_, err := s.Trace(0, func(e logp.Event) {
			switch e.What {
			case logp.Sent:
				sent[e.Peer] = e.Time
			case logp.Received:
				t.add(shape, e.Peer, e.Rank, sent[e.Rank], e.Time, 1)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return Data{"messages": t}, nil
}

func drawFigure5(d Data) []chart.Chart {
	c := chart.Chart{
		Name: "ct-figure-5", Title: "Lamé tree, k = 3, P = 9, L = o = 1",
		X: chart.Axis{Label: "time [steps]", Ticks: chart.At(0, 1, 2, 3, 4, 5, 6, 7)},
		Y: chart.Axis{Label: "rank", From: -8.3, To: 0.3},
	}
	for r := range 9 {
		c.Y.Ticks = append(c.Y.Ticks, chart.Tick{Value: -float64(r), Label: fmt.Sprint(r)})
	}
	for sender := range 3 {
		t := d["messages"].where("shape", topology.Lame(3)).where("from", sender)
		var messages []chart.Point
		sent, received, to := t.numbers("sent"), t.numbers("received"), t.numbers("to")
		for i := range sent {
			messages = append(messages, chart.Point{X: sent[i], Y: -float64(sender)}, chart.Point{X: received[i], Y: -to[i]})
		}
		c.Series = append(c.Series,
			chart.Series{
				Name: fmt.Sprintf("messages of rank %d", sender), Kind: chart.Segments, Color: sender,
				Points: messages,
			},
			chart.Series{Kind: chart.Dots, Color: sender, Points: messages})
	}
	return []chart.Chart{c}
}

func judgeFigure5(d Data) []Claim {
	lame := d["messages"].where("shape", topology.Lame(3))
	children := func(rank int) string {
		return strings.Join(column(lame.where("from", rank), "to"), ", ")
	}
	firstSend := func(rank int) float64 { return slices.Min(lame.where("from", rank).numbers("sent")) }
	end := slices.Max(lame.numbers("received"))
	best := slices.Max(d["messages"].where("shape", topology.Optimal(1, 1)).numbers("received"))
	return []Claim{
		{
			where: "§3.2.2, Eq. 2 and Figure 5", Claim: "children of rank 0 of a Lamé tree, k = 3, P = 9",
			Stated:   "1, 2, 3, 4, 6",
			Measured: children(0), Verdict: verdict(children(0) == "1, 2, 3, 4, 6"), Runs: 1,
		},
		{
			where: "§3.2.2, Figure 5", Claim: "iterations in which ranks 1 and 2 send for the first time", Stated: "3 and 4",
			Measured: fmt.Sprintf("%.0f and %.0f", firstSend(1), firstSend(2)), Verdict: verdict(firstSend(1) == 3 &&
				firstSend(2) == 4), Runs: 1,
		},
		{
			where: "§3.2.2, Figure 5", Claim: "with L = o = 1 this tree's latency is minimal", Stated: "minimal",
			Measured: fmt.Sprintf("%.0f steps; the optimal tree takes %.0f", end, best), Verdict: verdict(end == best), Runs: 2,
		},
	}
}

// column are the texts of a column.
func column(t *Table, name string) []string {
	i := t.index(name)
	texts := make([]string, len(t.Rows))
	for n, row := range t.Rows {
		texts[n] = row[i]
	}
	return texts
}
