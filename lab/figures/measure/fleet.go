package main

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/bench/fleet"
	"github.com/pleach-go/pleach/lab/figures"
)

// fleetResult runs a fleet.
func fleetResult(l *lab, zones, members int, flags string) (r fleet.Result) {
	var out struct {
		Results []fleet.Result `json:"results"`
	}
	l.measure(&out, fmt.Sprintf("go run ./lab/cmd/pleach-lab bench fleet --zones %d --members %d %s --json", zones,
		members, flags))
	if len(out.Results) > 0 {
		r = out.Results[0]
	}
	return r
}

// fleetQuiet measures fleets without faults.
func fleetQuiet(l *lab) []figures.Table {
	t := figures.Table{Name: "quiet", Columns: []string{
		"zones × members", "broadcasts/s", "in a zone, p50", "median",
		"99%", "lost, twice, out of order", "messages between zones, of a broadcast", "bytes between zones, a second",
	}}
	for _, g := range []struct{ zones, members, rate int }{{4, 8, 10}, {8, 8, 10}, {8, 16, 5}} {
		r := fleetResult(l, g.zones, g.members, fmt.Sprintf("--delay 40ms --time 15s --rate %d --kill 0 --cut 0 --down 0",
			g.rate))
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%d × %d", g.zones, g.members), fmt.Sprint(g.rate), millis(r.ZoneP50), millis(r.P50), millis(r.P99),
			fmt.Sprintf("%d, %d, %d", r.Lost, r.Twice, r.OutOfOrder), digits(r.WANMessages), digits(r.WANBytes/1000) + " kB",
		})
	}
	return []figures.Table{t}
}

// fleetTrouble measures a fleet whose delegates and zones die.
func fleetTrouble(l *lab) []figures.Table {
	t := figures.Table{Name: "trouble", Columns: []string{
		"zones × members, seed", "broadcasts, deliveries", "gateways killed", "lost, twice, out of order", "zone p50",
		"p50, of the bound", "p99",
		"messages between zones, of a broadcast",
	}}
	for _, g := range []struct{ zones, members, seed int }{{16, 32, 1}, {16, 32, 2}} {
		r := fleetResult(l, g.zones, g.members, fmt.Sprintf("--delay 20ms --seed %d", g.seed))
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%d × %d, %d", g.zones, g.members, g.seed), fmt.Sprintf("%s, %s", thousands(r.Broadcasts),
				thousands(r.Deliveries)),
			fmt.Sprint(r.Kills), fmt.Sprintf("%d, %d, %d", r.Lost, r.Twice, r.OutOfOrder), millis(r.ZoneP50),
			fmt.Sprintf("%s, %.2f", millis(r.P50), r.Ratio), millis(r.P99),
			fmt.Sprintf("%.1f: %.1f copies, %.1f acknowledgments, %.1f exchanges of positions", r.WANMessages, r.WANCopies,
				r.WANAcks, r.WANSyncs),
		})
	}
	return []figures.Table{t}
}

// fleetFull measures the throughput of a fleet, compared with the same members in one group.
func fleetFull(l *lab) []figures.Table {
	t := figures.Table{Name: "full", Columns: []string{
		"size, faults", "broadcasts, deliveries",
		"lost, twice, out of order", "each member, a second", "in one group", "ratio",
	}}
	const none, some = "--kill 0 --cut 0 --down 0", "--kill 3s --cut 10s --down 0"
	for _, g := range []struct {
		size           int
		flags, trouble string
	}{
		{64, none, "none"},
		{8192, none, "none"},
		{64, some, "leaders killed, a zone cut off for 10 s of 30"},
		{64, "", "a gateway killed twice a second, a zone cut off for 5 s of 30, another dead for 3 s"},
	} {
		r := fleetResult(l, 3, 3, fmt.Sprintf("--rate full --size %d %s", g.size, g.flags))
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%s B, %s", thousands(g.size), g.trouble), fmt.Sprintf("%s, %s", thousands(r.Broadcasts),
				thousands(r.Deliveries)),
			fmt.Sprintf("%d, %d, %d", r.Lost, r.Twice, r.OutOfOrder), thousands(int(r.PerOrigin)),
			thousands(int(r.GroupPerOrigin)), fmt.Sprintf("%.2f", r.RateRatio),
		})
	}
	return []figures.Table{t}
}
