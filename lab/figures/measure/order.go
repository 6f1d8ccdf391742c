package main

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/lab/bench/order"
	"github.com/pleach-go/pleach/lab/bench/shards"
	"github.com/pleach-go/pleach/lab/figures"
)

// orderTimes compares messages in one order with the broadcast, etcd and JetStream.
func orderTimes(l *lab) []figures.Table {
	systems := []string{"broadcast", "order", "safe", "etcd-puts", "jetstream"}
	var out struct {
		Results []order.Result `json:"results"`
	}
	l.measure(&out, "go -C lab/peers run ./order --members 3,5,16 --size 64,8192 --messages 500 --time 1500ms --json")
	t := figures.Table{Name: "times", Columns: []string{
		"members", "bytes", "broadcast", "order", "safe", "etcd put",
		"JetStream R3",
	}}
	for _, members := range []int{3, 5, 16} {
		for _, size := range []int{64, 8192} {
			row := []string{fmt.Sprint(members), thousands(size)}
			for _, system := range systems {
				i := slices.IndexFunc(out.Results, func(r order.Result) bool {
					return r.System == system && r.Members == members &&
						r.Size == size
				})
				if i < 0 {
					row = append(row, none)
					continue
				}
				row = append(row, fmt.Sprintf("%s, %s", micros(out.Results[i].P50), perSecond(out.Results[i].Rate)))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return []figures.Table{t}
}

// leaseResult is what lab/peers/lease prints.
type leaseResult struct {
	System string  `json:"system"`
	TTL    float64 `json:"ttl_ms"`
	Kills  int     `json:"kills"`
	Leases int     `json:"leases"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
	Two    int     `json:"two_holders"`
}

// orderLeases measures how long leases have no holder after a kill, compared with etcd's.
func orderLeases(l *lab) []figures.Table {
	var out struct {
		Results []leaseResult `json:"results"`
	}
	l.measure(&out, "go -C lab/peers run ./lease --processes 3 --leases 30 --kills 15 --ttl 2s --json")
	t := figures.Table{Name: "leases", Columns: []string{
		"", "TTL", "holders killed", "leases without a holder",
		"p50", "p99", "at most", "two holders",
	}}
	for _, r := range out.Results {
		t.Rows = append(t.Rows, []string{
			map[string]string{"pleach": "Pleach", "etcd": "etcd, a session and a mutex"}[r.System], millis(r.TTL),
			fmt.Sprint(r.Kills), fmt.Sprint(r.Leases),
			millis(r.P50), millis(r.P99), millis(r.Max), fmt.Sprint(r.Two),
		})
	}
	return []figures.Table{t}
}

// shardsMove measures partitions that change their owners.
func shardsMove(l *lab) []figures.Table {
	t := figures.Table{Name: "move", Columns: []string{"", "tokens alone", "lease of 1 s"}}
	var results []shards.Result
	for _, lease := range []string{"-1s", "1s"} {
		var out struct {
			Results []shards.Result `json:"results"`
		}
		l.measure(&out, fmt.Sprintf(
			"go run ./lab/cmd/pleach-lab bench shards --members 16 --partitions 1024 --trials 10 --lease %s --json", lease))
		if l.err != nil {
			return nil
		}
		results = append(results, out.Results...)
	}
	for _, line := range []struct {
		name string
		cell func(*shards.Result) string
	}{
		{"owned again after a death, p50", func(r *shards.Result) string { return millis(r.P50) }},
		{"p99", func(r *shards.Result) string { return millis(r.P99) }},
		{"at most", func(r *shards.Result) string { return millis(r.Max) }},
		{"moved after a death, of the minimum", func(r *shards.Result) string { return ratio(r.MovedKill, 1) }},
		{"moved after a join, of the minimum", func(r *shards.Result) string { return ratio(r.MovedJoin, 1) }},
		{"largest share, of the mean", func(r *shards.Result) string { return ratio(r.Largest, 1) }},
		{"requests during 16 restarts", func(r *shards.Result) string { return thousands(r.Requests) }},
		{"of them retried", func(r *shards.Result) string { return thousands(r.Retried) }},
		{"longest request", func(r *shards.Result) string { return millis(r.RequestMax) }},
		{"served by two owners, by time or token", func(r *shards.Result) string { return fmt.Sprint(r.Wrong()) }},
	} {
		row := []string{line.name}
		for i := range results {
			row = append(row, line.cell(&results[i]))
		}
		t.Rows = append(t.Rows, row)
	}
	return []figures.Table{t}
}
