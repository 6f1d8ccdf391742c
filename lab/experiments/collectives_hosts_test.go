package experiments

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/lab/chart"
)

// The collectives of processes of which several share a host, under LogP with two kinds of
// links: by engines that know nothing of hosts, and by engines that do.

const collectiveHostsGolden = "testdata/collectives-hosts.csv"

// A step of these figures is half a microsecond: they are those of loggp.Standard.
var standardHosts = collectiveHosts{l: 20, o: 14, gap: 7}

// collectiveHostsCases are what is tabled for so many hosts with so many processes each.
func collectiveHostsCases(hosts, each int) (cases []collectiveRun) {
	for _, call := range []string{"barrier", "broadcast", "reduce", "allreduce"} {
		r := collectiveRun{call: call, size: hosts * each, l: 1, o: 4, root: hosts*each/2 + 1, hosts: standardHosts}
		r.hosts.number = hosts
		two := r
		two.hosts.known = true
		cases = append(cases, r, two)
	}
	return cases
}

// The golden file is what all sizes show: all of it in a full run, its first sizes always.
func TestCollectivesOfHostsGolden(t *testing.T) {
	layouts := [][2]int{{4, 4}, {16, 8}, {64, 16}, {256, 32}, {1024, 64}}
	small := 2
	if testutil.RaceEnabled {
		small = 1
	}
	if !testutil.Full.On() {
		layouts = layouts[:small]
	}
	var b strings.Builder
	fmt.Fprintln(&b, "call,hosts,processes,levels,latency,messages,messages_between_hosts")
	for _, y := range layouts {
		var one collectiveOutcome
		for _, r := range collectiveHostsCases(y[0], y[1]) {
			got, levels := r.simulate(t), 1
			if r.hosts.known {
				levels = 2
				if got.latency > one.latency || got.between > one.between {
					t.Errorf("%+v: two levels take %d steps and %d messages between hosts, one level %d and %d",
						r, got.latency, got.between, one.latency, one.between)
				}
			}
			one = got
			fmt.Fprintf(&b, "%s,%d,%d,%d,%d,%d,%d\n", r.call, y[0], r.size, levels, got.latency, got.messages(), got.between)
		}
		if testutil.Full.On() {
			t.Logf("%d hosts done, %d MB taken", y[0], memory()>>20)
		}
	}
	if testutil.UpdateGolden.On() && testutil.Full.On() {
		if err := os.WriteFile(collectiveHostsGolden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(collectiveHostsGolden)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(golden), b.String()) || testutil.Full.On() && len(golden) != b.Len() {
		t.Errorf("computed:\n%s\nrecorded:\n%s", b.String(), golden)
	}
}

// The picture of docs/research/findings.md is drawn from the golden file, anew by PLEACH_UPDATE_GOLDEN=1.
func TestCollectivesOfHostsCharts(t *testing.T) {
	c := chart.Chart{
		Name: "collectives-hosts", Title: "Processes that share hosts, under LogP",
		X: chart.Axis{Label: "processes", Log: true, Ticks: chart.Powers(4, 16, 3)},
		Y: chart.Axis{Label: "latency [steps]", To: 5000},
	}
	for i, curve := range []struct{ call, levels, name string }{
		{"barrier", "1", "Barrier, one level"},
		{"allreduce", "1", "Allreduce, one level"},
		{"allreduce", "2", "Allreduce, Barrier, two levels"},
	} {
		s := chart.Series{Name: curve.name, Color: i}
		for _, row := range goldenRows(t, collectiveHostsGolden)[1:] {
			if row[0] == curve.call && row[3] == curve.levels {
				s.Points = append(s.Points, chart.Point{X: number(t, row[2]), Y: number(t, row[4])})
			}
		}
		c.Series = append(c.Series, s)
	}
	checkDrawn(t, &c, collectiveHostsGolden)
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
