package main

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
	"github.com/pleach-go/pleach/lab/figures"
)

// broadcastOutput is what the commands print.
type broadcastOutput struct {
	Results []broadcast.Result `json:"results"`
}

// of returns the result of a system among members, or an empty one.
func (o *broadcastOutput) of(system string, members int) broadcast.Result {
	i := slices.IndexFunc(o.Results, func(r broadcast.Result) bool { return r.System == system && r.Members == members })
	if i < 0 {
		return broadcast.Result{}
	}
	return o.Results[i]
}

const benchBroadcast = "go run ./lab/cmd/pleach-lab bench broadcast --json "

// broadcastLatency measures one message at a time, compared with a bare tree.
func broadcastLatency(l *lab) []figures.Table {
	t := figures.Table{Name: "latency", Columns: []string{
		"", "pleach p50", "bare p50", "ratio", "messages per member",
		"flags",
	}}
	for _, g := range []struct {
		what    string
		members int
		flags   string
	}{
		{"64 B, 32 members in one process", 32, "--members 32 --rounds 1000"},
		{"64 B, 128 members in one process", 128, "--members 128 --rounds 500"},
		{"64 B, 32 processes", 32, "--members 32 --processes --rounds 500"},
		{"64 KiB, 16 members in one process", 16, "--members 16 --size 65536 --rounds 1000"},
		{"64 KiB, 16 processes", 16, "--members 16 --processes --size 65536 --rounds 600"},
	} {
		var out broadcastOutput
		l.measure(&out, benchBroadcast+"--compare bare "+g.flags)
		p, b := out.of("pleach", g.members), out.of("bare", g.members)
		t.Rows = append(t.Rows, []string{
			g.what, micros(p.P50), micros(b.P50), ratio(p.P50, b.P50), digits(p.Messages), "`" + g.flags + "`",
		})
	}
	return []figures.Table{t}
}

// broadcastRate measures messages back to back.
func broadcastRate(l *lab) []figures.Table {
	t := figures.Table{
		Name:    "rate",
		Columns: []string{"", "pleach", "bare", "ratio", "processor time for each, all members", "bare", "flags"},
	}
	for _, g := range []struct {
		what    string
		members int
		flags   string
	}{
		{"64 B, 32 members in one process", 32, "--members 32 --rounds 50000"},
		{"64 B, 32 processes", 32, "--members 32 --processes --rounds 50000"},
		{"64 B, 128 members in one process", 128, "--members 128 --rounds 20000"},
		{"1 MiB, 16 members in one process", 16, "--members 16 --size 1048576 --rounds 300"},
	} {
		var out broadcastOutput
		l.measure(&out, benchBroadcast+"--rate --compare bare "+g.flags)
		p, b := out.of("pleach", g.members), out.of("bare", g.members)
		t.Rows = append(t.Rows, []string{
			g.what, perSecond(p.PerSecond), perSecond(b.PerSecond), ratio(p.PerSecond, b.PerSecond), micros(p.CPU),
			micros(b.CPU), "`" + g.flags + "`",
		})
	}
	return []figures.Table{t}
}

// broadcastDead measures members that refuse connections.
func broadcastDead(l *lab) []figures.Table {
	t := figures.Table{Name: "dead", Columns: []string{"dead", "complete", "p10", "p50", "p99"}}
	var out broadcastOutput
	l.measure(&out, benchBroadcast+"--members 64 --dead 0,1,3,6 --rounds 1000")
	p50 := map[int]float64{}
	for _, r := range out.Results {
		p50[r.Dead] = r.P50
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(r.Dead), fmt.Sprintf("%s of %s", thousands(r.Complete), thousands(r.Rounds)), micros(r.P10),
			micros(r.P50), micros(r.P99),
		})
	}
	readme := figures.Table{Name: "readme-dead", Columns: readmeColumns, Rows: [][]string{{
		"64 B to 64 members (static), 6 of them crashed", micros(p50[6]), "none crashed", micros(p50[0]),
	}}}
	return []figures.Table{t, readme}
}

// peers32 measures Pleach and what people use now.
func peers32(l *lab) []figures.Table {
	_, t := broadcastPeers(l, 32, 200)
	return []figures.Table{t}
}

func peers128(l *lab) []figures.Table {
	_, t := broadcastPeers(l, 128, 100)
	return []figures.Table{t}
}

// broadcastPeers measures groups of all systems, in one process.
func broadcastPeers(l *lab, members, rounds int) (out broadcastOutput, t figures.Table) {
	l.measure(&out, fmt.Sprintf("go -C lab/peers run . --members %d --rounds %d --json", members, rounds))
	t = figures.Table{Name: fmt.Sprint(members), Columns: []string{
		"system", "complete", "p10", "p50", "p99", "of pleach",
		"messages", "goroutines", "kB per member",
	}}
	for _, r := range out.Results {
		t.Rows = append(t.Rows, []string{
			r.System, fmt.Sprintf("%d of %d", r.Complete, r.Rounds), micros(r.P10), micros(r.P50), micros(r.P99),
			ratio(r.P50, out.of("pleach", members).P50) + "×",
			digits(r.Messages), digits(r.Goroutines), digits(r.Memory / 1000),
		})
	}
	return out, t
}
