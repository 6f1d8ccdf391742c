package main

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/figures"
)

// simOutput is what the commands print.
type simOutput struct {
	Seconds float64 `json:"seconds"`
	Memory  float64 `json:"memory_bytes"`
}

func (o simOutput) took(runs int) string { return millis(o.Seconds * 1000 / float64(runs)) }
func (o simOutput) memory() string       { return digits(o.Memory/1e6) + " MB" }

// simulatorSparse measures how the sparse engine grows with the number of processes.
func simulatorSparse(l *lab) []figures.Table {
	t := figures.Table{Name: "sparse", Columns: []string{"processes", "dead", "time", "memory"}}
	for _, c := range []struct {
		power int
		dead  string
	}{{16, "0.01%"}, {20, "0.01%"}, {24, "0.01%"}, {28, "0.01%"}, {30, "0.01%"}, {30, "1%"}} {
		var out simOutput
		l.measure(&out, fmt.Sprintf("go run ./lab/cmd/pleach-lab sim -P %d --faults %s --runs 1 --json", 1<<c.power, c.dead))
		t.Rows = append(t.Rows, []string{fmt.Sprintf("2^%d", c.power), c.dead, out.took(1), out.memory()})
	}
	return []figures.Table{t}
}

// simulatorEvents measures the event-driven engine on one processor.
func simulatorEvents(l *lab) []figures.Table {
	const runs = 20
	t := figures.Table{Name: "events", Columns: []string{"65,536 processes", "none dead", "4% dead", "memory"}}
	for _, c := range []struct{ name, flags string }{
		{"binomial", "--shape binomial"},
		{"4-ary", "--shape kary:4"},
		{"Lamé 2", "--shape lame:2"},
		{"optimal", "--shape optimal"},
		{"binomial, optimized opportunistic, overlapped", "--shape binomial --correction optimized:2 --start overlapped"},
		{"gossip until 38, checked", "--dissemination gossip --gossip-time 38 --drain 0"},
	} {
		row := []string{c.name}
		var out simOutput
		for _, dead := range []string{"0", "4%"} {
			l.measure(&out, fmt.Sprintf(
				"env GOMAXPROCS=1 go run ./lab/cmd/pleach-lab sim --engine events -P 65536 %s --faults %s --runs %d --json",
				c.flags, dead, runs))
			row = append(row, out.took(runs))
		}
		t.Rows = append(t.Rows, append(row, out.memory()))
	}
	return []figures.Table{t}
}
