package main

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/lab/bench/silent"
	"github.com/pleach-go/pleach/lab/figures"
)

// silentRuns is how often each system is measured.
const silentRuns = 3

// silentOutput is what the commands print.
type silentOutput struct {
	Results []silent.Result `json:"results"`
}

// of returns a field of the runs of a system.
func (o *silentOutput) of(system string, field func(silent.Result) float64) (values []float64) {
	for _, r := range o.Results {
		if r.System == system {
			values = append(values, field(r))
		}
	}
	return values
}

func before(r silent.Result) float64 { return r.BeforeMS }
func first(r silent.Result) float64  { return r.FirstMS }
func middle(r silent.Result) float64 { return r.MedianMS }
func worst(r silent.Result) float64  { return r.WorstMS }

// complete says how many of the messages after the stop every live member got.
func (o *silentOutput) complete(system string) string {
	incomplete, sent := 0, 0
	for _, r := range o.Results {
		if r.System == system {
			incomplete, sent = incomplete+r.Incomplete, sent+r.Sent
		}
	}
	switch incomplete {
	case 0:
		return "all"
	case sent:
		return "none"
	}
	return fmt.Sprintf("%d of %d", sent-incomplete, sent)
}

// silentSizes measures groups of Pleach past one silent inner member, and past several.
func silentSizes(l *lab) []figures.Table {
	t := figures.Table{Name: "sizes", Columns: []string{
		"members", "stopped", "before", "first message",
		"median until the view", "worst", "complete",
	}}
	for _, g := range []struct {
		members       int
		ranks, silent string
	}{
		{4, "1", "1"},
		{8, "1", "1"},
		{16, "1", "1"},
		{16, "1,2", "2, adjacent"},
		{32, "1", "1"},
		{64, "1", "1"},
		{64, "10%", "6"},
	} {
		var out silentOutput
		l.measure(&out, fmt.Sprintf(
			"go run ./lab/cmd/pleach-lab bench silent --members %d --silent %s --before 1s --after 2s --runs %d --json",
			g.members, g.ranks, silentRuns))
		row := []string{fmt.Sprint(g.members), g.silent}
		for _, field := range []func(silent.Result) float64{before, first, middle, worst} {
			row = append(row, span(out.of("pleach", field)))
		}
		t.Rows = append(t.Rows, append(row, out.complete("pleach")))
	}
	return []figures.Table{t}
}

// silentRate measures at full rate.
func silentRate(l *lab) []figures.Table {
	t := figures.Table{Name: "rate", Columns: []string{
		"size", "before, messages/s", "until the view",
		"of before", "lost",
	}}
	for _, size := range []int{64, 8192} {
		var out silentOutput
		l.measure(&out, fmt.Sprintf(
			"go run ./lab/cmd/pleach-lab bench silent --members 16 --rate full --size %d --runs %d --json", size, silentRuns))
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%d B", size),
			span(out.of("pleach", func(r silent.Result) float64 { return r.RateBefore })),
			span(out.of("pleach", func(r silent.Result) float64 { return r.RateAfter })),
			span(out.of("pleach", func(r silent.Result) float64 { return r.RateAfter / max(r.RateBefore, 1) })),
			fmt.Sprint(slices.Max(append(out.of("pleach", func(r silent.Result) float64 { return float64(r.Lost) }), 0))),
		})
	}
	return []figures.Table{t}
}

// silentPeers compares Pleach with its peers, and makes README's row of it.
func silentPeers(l *lab) []figures.Table {
	systems := []struct{ system, name string }{
		{"pleach", "Pleach"},
		{"nats", "NATS"},
		{"gossipsub", "gossipsub"},
		{"memberlist", "memberlist"},
		{"memberlist-defaults", "memberlist with its defaults"},
		{"bare", "bare tree"},
		{"grpc", "gRPC along the tree"},
	}
	var out silentOutput
	l.measure(&out, fmt.Sprintf(
		"go -C lab/peers run . silent --members 32 --silent 1 --before 1s --after 2s --runs %d --json", silentRuns))
	t := figures.Table{Name: "peers", Columns: []string{
		"system", "before", "first", "median", "worst", "complete",
		"messages per member",
	}}
	for _, s := range systems {
		row := []string{s.name}
		for _, field := range []func(silent.Result) float64{before, first, middle, worst} {
			row = append(row, span(out.of(s.system, field)))
		}
		messages := func(r silent.Result) float64 { return r.MessagesAfter }
		t.Rows = append(t.Rows, append(row, out.complete(s.system), span(out.of(s.system, messages))))
	}
	readme := figures.Table{Name: "readme", Columns: readmeColumns, Rows: [][]string{{
		fmt.Sprintf("64 B to 32 processes, first message after a member hangs (slowest of %d)", silentRuns),
		slowestFirst(&out, "pleach"), "NATS", slowestFirst(&out, "nats"),
	}}}
	return []figures.Table{t, readme}
}

// slowestFirst is the longest time that the first message after the stop took.
func slowestFirst(o *silentOutput, system string) string {
	return millis(slices.Max(append(o.of(system, first), 0)))
}
