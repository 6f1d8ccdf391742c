package agent

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pleach-go/pleach/internal/agent/api"
	"github.com/pleach-go/pleach/prom"
)

// Metrics implements [api.Agent]: the metrics of the member, of the agent and of its process.
// An agent that is not a member has only the latter two.
func (a *Agent) Metrics() http.Handler {
	agent := prometheus.NewRegistry()
	agent.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		gauge("pleach_agent_member", "1 while the agent is a member of a group with a quorum.", func() float64 {
			if a.Ready() != nil {
				return 0
			}
			return 1
		}),
		gauge("pleach_agent_retained_messages", "Messages that subscribers can still get.", func() float64 {
			n, _ := a.store.log.Retained()
			return float64(n)
		}),
		gauge("pleach_agent_retained_bytes", "Bytes of the messages that subscribers can still get.", func() float64 {
			_, bytes := a.store.log.Retained()
			return float64(bytes)
		}),
		warningMetrics{a},
	)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := prometheus.Gatherers{agent}
		if g, err := a.current(); err == nil { // another one after the agent has come back
			member := prometheus.NewRegistry()
			member.MustRegister(prom.New(g))
			if s := a.services.Load(); s != nil {
				s.register(member)
			}
			if f := a.fleet.current.Load(); f != nil {
				member.MustRegister(fleetMetrics{f})
			}
			all = append(all, member)
		}
		promhttp.HandlerFor(all, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}).ServeHTTP(w, r)
	})
}

// warningMetrics are the warnings of an agent, one for each kind.
type warningMetrics struct{ agent *Agent }

var warningDescription = prometheus.NewDesc("pleach_agent_warning", "1 while the agent warns of something of that kind: its log and pleach status say of what.", []string{"kind"}, nil)

// Describe implements [prometheus.Collector].
func (m warningMetrics) Describe(to chan<- *prometheus.Desc) { to <- warningDescription }

// Collect implements [prometheus.Collector].
func (m warningMetrics) Collect(to chan<- prometheus.Metric) {
	now := slices.Clone(m.agent.warnings.hostNow())
	if g := m.agent.group.Load(); g != nil {
		now = append(now, flapping(g.Status().History, time.Now())...)
	}
	for _, kind := range api.WarningKinds {
		value := 0.0
		if slices.ContainsFunc(now, func(w api.Warning) bool { return w.Kind == kind }) {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(warningDescription, prometheus.GaugeValue, value, kind)
	}
}

// maxScrapes is how many scrapes are served at a time.
const maxScrapes = 4

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

var _ api.Agent = (*Agent)(nil)
