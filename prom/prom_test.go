package prom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/prom"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// members returns the two members of a group.
func members(t *testing.T) (first, second *pleach.Group) {
	t.Helper()
	config := pleach.Config{Group: "web", ID: "a", Listen: "127.0.0.1:0"}
	first, err := pleach.Create(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Abort() })
	config.ID = "b"
	second, err = pleach.Join(t.Context(), config, first.Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Abort() })
	return first, second
}

// pair returns the collector of the first of two members, after a broadcast to it.
func pair(t *testing.T) prometheus.Collector {
	t.Helper()
	first, second := members(t)
	if err := second.Broadcast(t.Context(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	for range first.Messages(t.Context()) {
		break
	}
	return prom.New(first)
}

func TestCollect(t *testing.T) {
	c := pair(t)
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v: %v", err, problems)
	}
	const want = `
# HELP pleach_member 1 while this process is a member of the group.
# TYPE pleach_member gauge
pleach_member{group="web"} 1
# HELP pleach_member_info Names this member.
# TYPE pleach_member_info gauge
pleach_member_info{group="web",id="a",rank="0"} 1
# HELP pleach_members Members of the current view.
# TYPE pleach_members gauge
pleach_members{group="web"} 2
# HELP pleach_messages_received_bytes_total Bytes of the broadcasts that the program has received.
# TYPE pleach_messages_received_bytes_total counter
pleach_messages_received_bytes_total{group="web"} 5
# HELP pleach_messages_received_total Broadcasts of others that the program has received.
# TYPE pleach_messages_received_total counter
pleach_messages_received_total{group="web"} 1
# HELP pleach_peers_connected Members that this one is connected to.
# TYPE pleach_peers_connected gauge
pleach_peers_connected{group="web"} 1
# HELP pleach_quorum 1 while enough members are reachable to decide the next view.
# TYPE pleach_quorum gauge
pleach_quorum{group="web"} 1
# HELP pleach_views_installed_total Views that this member has installed since it became one.
# TYPE pleach_views_installed_total counter
pleach_views_installed_total{group="web"} 1
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "pleach_member", "pleach_member_info",
		"pleach_members", "pleach_quorum",
		"pleach_messages_received_total", "pleach_messages_received_bytes_total", "pleach_peers_connected",
		"pleach_views_installed_total"); err != nil {
		t.Error(err)
	}
}

// The delay of a broadcast whose receipt was waited for is in the histogram, and the buckets are
// those of Prometheus: each counts all that are shorter.
func TestPropagation(t *testing.T) {
	first, _ := members(t)
	c := prom.New(first)
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v: %v", err, problems)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	for tries := range 100 { // a scheduler may delay a receipt so much that it does not count
		if err := first.Broadcast(t.Context(), []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := first.WaitStable(t.Context()); err != nil {
			t.Fatal(err)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "pleach_propagation_seconds" })
		h := families[i].GetMetric()[0].GetHistogram()
		if h.GetSampleCount() == 0 {
			continue
		}
		longest := h.GetBucket()[len(h.GetBucket())-1]
		if h.GetSampleCount() > uint64(tries)+1 || h.GetSampleSum() <= 0 || len(h.GetBucket()) != 16 ||
			longest.GetUpperBound() != 10 || longest.GetCumulativeCount() != h.GetSampleCount() {
			t.Errorf("after %d broadcasts: %v", tries+1, h)
		}
		return
	}
	t.Error("100 broadcasts with receipts, and none is measured")
}

// The dashboard asks for metrics that there are, and for each of them.
func TestDashboard(t *testing.T) {
	names, asked := namesOf(t, pair(t)), make(map[string]bool)
	for _, expr := range expressions(t) {
		for _, name := range regexp.MustCompile(`pleach_\w+`).FindAllString(expr, -1) {
			name = strings.TrimSuffix(name, "_bucket")
			asked[name] = true
			if !slices.Contains(names, name) {
				t.Errorf("%s asks for %s, which is none of %q", expr, name, names)
			}
		}
	}
	for _, name := range names {
		if !asked[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// expressions returns what the panels of the dashboard ask for.
func expressions(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../deploy/grafana/pleach.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			list = append(list, target.Expr)
		}
	}
	return list
}

// namesOf returns the names of all metrics of a collector.
func namesOf(t *testing.T, c prometheus.Collector) (names []string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		names = append(names, f.GetName())
	}
	return names
}

// A process serves the metrics of its member.
func ExampleNew() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	group, err := pleach.Create(ctx, pleach.Config{Group: "web"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.New(group))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{}) // for http.Handle("/metrics", handler)

	reply := httptest.NewRecorder()
	handler.ServeHTTP(reply, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(reply.Body.String()) {
		if strings.HasPrefix(line, "pleach_members{") {
			fmt.Print(line)
		}
	}
	// Output: pleach_members{group="web"} 1
}
