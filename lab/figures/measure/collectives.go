package main

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/lab/bench/collectives"
	"github.com/pleach-go/pleach/lab/figures"
)

var (
	collectiveMembers = []int{4, 8, 16}
	collectiveSizes   = []struct {
		bytes int
		name  string
	}{{8, "8 B"}, {64 << 10, "64 KiB"}, {4 << 20, "4 MiB"}}
)

// collectivesOutput is what the commands print.
type collectivesOutput struct {
	Results []collectives.Result `json:"results"`
}

// of returns the result of a system, of Pleach that of its run-through calls.
func (o *collectivesOutput) of(system, operation string, members, size int) collectives.Result {
	i := slices.IndexFunc(o.Results, func(r collectives.Result) bool {
		return r.System == system && r.Operation == operation && r.Members == members && r.Size == size &&
			r.FailureMode != "plain"
	})
	if i < 0 {
		return collectives.Result{}
	}
	return o.Results[i]
}

// collectivesBesideMPI compares calls with Open MPI, by both of its networks on one host.
func collectivesBesideMPI(l *lab) []figures.Table {
	var out collectivesOutput
	for _, members := range collectiveMembers { // in pieces: each is a minute
		var part collectivesOutput
		l.measure(&part, fmt.Sprintf(
			"go run ./lab/cmd/pleach-lab bench collectives --members %d --rounds 200 --compare openmpi --json", members))
		out.Results = append(out.Results, part.Results...)
	}
	large := func(system string) string { return micros(out.of(system, "allreduce", 16, 4<<20).P50) }
	return []figures.Table{
		out.ratios("tcp", func(r collectives.Result) float64 { return r.Ratio }),
		out.ratios("shared", func(r collectives.Result) float64 { return r.OfShared }),
		out.runThrough(),
		{Name: "readme", Columns: readmeColumns, Rows: [][]string{{
			"Allreduce of 4 MiB, 16 processes", large("pleach"), "Open MPI, shared memory", large("openmpi-shm"),
		}}},
	}
}

// ratios makes a table of a row for each operation that was compared.
func (o *collectivesOutput) ratios(name string, field func(collectives.Result) float64) figures.Table {
	t := figures.Table{Name: name, Columns: []string{""}}
	for _, members := range collectiveMembers {
		for _, size := range collectiveSizes {
			t.Columns = append(t.Columns, fmt.Sprintf("%d: %s", members, size.name))
		}
	}
	for _, operation := range collectives.Operations() {
		row := []string{operation}
		for _, members := range collectiveMembers {
			for _, size := range collectiveSizes {
				row = append(row, o.ratio(operation, members, size.bytes, field))
			}
		}
		if slices.ContainsFunc(row[1:], func(cell string) bool { return cell != "" && cell != none }) {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// ratio is one cell. A barrier and a split have no size, and stand below the first.
func (o *collectivesOutput) ratio(operation string, members, size int, field func(collectives.Result) float64) string {
	if operation == "barrier" || operation == "split" {
		if size != collectiveSizes[0].bytes {
			return ""
		}
		size = 0
	}
	return ratio(field(o.of("pleach", operation, members, size)), 1)
}

// runThrough compares calls that finish even when a process dies with those that report.
func (o *collectivesOutput) runThrough() figures.Table {
	var ratios []float64
	for _, r := range o.Results {
		if r.OfReport > 0 {
			ratios = append(ratios, r.OfReport)
		}
	}
	return figures.Table{
		Name: "run-through", Columns: []string{"cases", "takeover divided by report: median", "lowest – highest"},
		Rows: [][]string{{fmt.Sprint(len(ratios)), ratio(median(ratios), 1), span(ratios)}},
	}
}
