package main

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/bench/scale"
	"github.com/pleach-go/pleach/lab/figures"
)

// scaleMembers measures what a member costs as its group grows.
func scaleMembers(l *lab) []figures.Table {
	t := figures.Table{Name: "members", Columns: []string{
		"members, transport", "heap", "goroutines", "connections", "idle CPU", "broadcast p50", "bare p50", "messages",
		"CPU of a broadcast", "bare CPU", "dead at once", "view p50", "frames", "CPU of a view change",
	}}
	joins := figures.Table{Name: "joins", Columns: []string{
		"members, TCP", "join at once",
		"until all have a view with them", "views",
	}}
	for _, flags := range []string{"--transport mem --members 64,256,1024,4096", "--members 64,256,1024"} {
		var out struct {
			Results []scale.Result `json:"results"`
		}
		l.measure(&out, "go run ./lab/cmd/pleach-lab bench scale --time 10s --json "+flags)
		last := 0
		for _, r := range out.Results {
			t.Rows = append(t.Rows, append(scaleMember(r, r.Members == last), scaleView(r)...))
			if r.Joined > 0 && r.Members != last {
				joins.Rows = append(joins.Rows, []string{
					fmt.Sprint(r.Members), fmt.Sprint(r.Joined), millis(r.JoinMS),
					fmt.Sprint(r.JoinViews),
				})
			}
			last = r.Members
		}
	}
	return []figures.Table{t, joins}
}

// scaleMember are the cells that do not depend on kills, which are empty in a size's further rows.
func scaleMember(r scale.Result, further bool) []string {
	size := fmt.Sprintf("%d, %s", r.Members, r.Transport)
	if further {
		return []string{size, "", "", "", "", "", "", "", "", ""}
	}
	return []string{
		size, digits(r.HeapKB) + " kB", digits(r.Goroutines), digits(r.Connections), fmt.Sprintf("%.3f%%", r.IdleCPU),
		micros(r.BroadcastP50), micros(r.BareP50), fmt.Sprintf("%.2f", r.Messages), micros(r.CPU), micros(r.BareCPU),
	}
}

// scaleView are the cells of a view change.
func scaleView(r scale.Result) []string {
	return []string{fmt.Sprint(r.Kills), millis(r.ViewP50), digits(r.ViewFrames), micros(r.ViewCPU)}
}

// scalePeers measures memberlist and serf in the same way.
func scalePeers(l *lab) []figures.Table {
	t := figures.Table{Name: "peers", Columns: []string{
		"members, system", "heap", "goroutines", "idle CPU",
		"death known, p50",
	}}
	var own struct {
		Results []scale.Result `json:"results"`
	}
	l.measure(&own, "go run ./lab/cmd/pleach-lab bench scale --time 10s --members 64 --kills 1 --json")
	var out struct {
		Results []struct {
			System     string  `json:"system"`
			Members    int     `json:"members"`
			HeapKB     float64 `json:"heap_kb_per_member"`
			Goroutines float64 `json:"goroutines_per_member"`
			IdleCPU    float64 `json:"idle_cpu_percent"`
			ViewP50    float64 `json:"view_p50_ms"`
		} `json:"results"`
	}
	l.measure(&out, "go -C lab/peers run ./scale --members 64 --kills 2 --json")
	row := func(members int, system string, heap, goroutines, idle, view float64) {
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%d, %s", members, system), digits(heap) + " kB", digits(goroutines), fmt.Sprintf("%.3f%%", idle),
			millis(view),
		})
	}
	for _, r := range own.Results {
		row(r.Members, "Pleach over TCP", r.HeapKB, r.Goroutines, r.IdleCPU, r.ViewP50)
	}
	for _, r := range out.Results {
		row(r.Members, r.System, r.HeapKB, r.Goroutines, r.IdleCPU, r.ViewP50)
	}
	return []figures.Table{t}
}
