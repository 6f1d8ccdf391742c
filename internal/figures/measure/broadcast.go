package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/internal/bench/broadcast"
	"github.com/pleach-go/pleach/internal/figures"
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

const benchBroadcast = "go run ./cmd/pleach-lab bench broadcast --json "

// broadcastLatency measures one message at a time beside a bare tree.
func broadcastLatency(l *lab) []figures.Table {
	t := figures.Table{Name: "latency", Columns: []string{"", "pleach p50", "bare p50", "ratio", "messages per member", "flags"}}
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
	t := figures.Table{Name: "rate", Columns: []string{"", "pleach", "bare", "ratio", "processor time for each, all members", "bare", "flags"}}
	readme := figures.Table{Name: "readme-rate", Columns: readmeColumns}
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
			g.what, perSecond(p.PerSecond), perSecond(b.PerSecond), ratio(p.PerSecond, b.PerSecond), micros(p.CPU), micros(b.CPU), "`" + g.flags + "`",
		})
		if strings.Contains(g.flags, "--processes") {
			readme.Rows = append(readme.Rows, []string{
				"64 B back to back to 32 processes, *static*", perSecond(p.PerSecond), "a bare tree that survives nothing " + perSecond(b.PerSecond),
			})
		}
	}
	return []figures.Table{t, readme}
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
			fmt.Sprint(r.Dead), fmt.Sprintf("%s of %s", thousands(r.Complete), thousands(r.Rounds)), micros(r.P10), micros(r.P50), micros(r.P99),
		})
	}
	readme := figures.Table{Name: "readme-dead", Columns: readmeColumns, Rows: [][]string{{
		"64 B to 64 members, *static*, 6 of them refusing", micros(p50[6]), micros(p50[0]) + " with all alive",
	}}}
	return []figures.Table{t, readme}
}

// peers32 measures Pleach beside what people use now, and makes README's row of it.
func peers32(l *lab) []figures.Table {
	out, t := broadcastPeers(l, 32, 200)
	var beside []string
	for _, r := range out.Results {
		if r.System != "pleach" && r.System != "bare" {
			beside = append(beside, fmt.Sprintf("%s %s", r.System, digits(r.P50/1000)))
		}
	}
	return []figures.Table{t, {Name: "readme", Columns: readmeColumns, Rows: [][]string{{
		"64 B to 32 members, *static*", digits(out.of("pleach", 32).P50/1000) + " ms", strings.Join(beside, ", "),
	}}}}
}

func peers128(l *lab) []figures.Table {
	_, t := broadcastPeers(l, 128, 100)
	return []figures.Table{t}
}

// broadcastPeers measures groups of all systems, in one process.
func broadcastPeers(l *lab, members, rounds int) (out broadcastOutput, t figures.Table) {
	l.measure(&out, fmt.Sprintf("go -C bench/peers run . --members %d --rounds %d --json", members, rounds))
	t = figures.Table{Name: fmt.Sprint(members), Columns: []string{"system", "complete", "p10", "p50", "p99", "of pleach", "messages", "goroutines", "kB per member"}}
	for _, r := range out.Results {
		t.Rows = append(t.Rows, []string{
			r.System, fmt.Sprintf("%d of %d", r.Complete, r.Rounds), micros(r.P10), micros(r.P50), micros(r.P99), ratio(r.P50, out.of("pleach", members).P50) + "×",
			digits(r.Messages), digits(r.Goroutines), digits(r.Memory / 1000),
		})
	}
	return out, t
}
