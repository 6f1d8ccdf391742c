package agent

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/prom"
)

// Metrics implements [api.Agent]: the metrics of the member, of the agent and of its process.
// An agent that is not a member has only the latter two.
func (a *Agent) Metrics(refused func(reason string) uint64) http.Handler {
	agent := a.registry(refusalMetrics{refused})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		promhttp.HandlerFor(a.gatherers(agent), promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
}

// registry returns the metrics of the agent and of its process, and others.
func (a *Agent) registry(others ...prometheus.Collector) *prometheus.Registry {
	agent := prometheus.NewRegistry()
	agent.MustRegister(append(others,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		gauge("pleach_agent_member", "1 while the agent is a member of a group with a quorum.", func() float64 {
			return one(a.isMember() == nil)
		}),
		gauge("pleach_agent_ready",
			"1 while the agent is ready: a member with a quorum that has the keys, locks, shards and retained messages.",
			func() float64 {
				return one(a.Ready() == nil)
			}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "pleach_agent_keys_begun_empty_total",
			Help: "How often keys and locks began empty at this agent because no member of the group had them.",
		}, func() float64 { return float64(a.losses.count.Load()) }),
		gauge("pleach_agent_retained_messages", "Messages that subscribers can still get.", func() float64 {
			n, _ := a.store.log.Retained()
			return float64(n)
		}),
		gauge("pleach_agent_retained_bytes", "Bytes of the messages that subscribers can still get.", func() float64 {
			_, bytes := a.store.log.Retained()
			return float64(bytes)
		}),
		warningMetrics{a},
	)...)
	return agent
}

// gatherers returns the metrics of the agent, and of its member if it is one: another one after the
// agent has come back.
func (a *Agent) gatherers(agent *prometheus.Registry) prometheus.Gatherers {
	all := prometheus.Gatherers{agent}
	g, err := a.current()
	if err != nil {
		return all
	}
	member := prometheus.NewRegistry()
	member.MustRegister(prom.New(g))
	if s := a.services.Load(); s != nil {
		s.register(member)
	}
	if f := a.fleet.current.Load(); f != nil {
		member.MustRegister(fleetMetrics{f})
	}
	return append(all, member)
}

// warningMetrics are the warnings of an agent, one for each kind.
type warningMetrics struct{ agent *Agent }

var warningDescription = prometheus.NewDesc("pleach_agent_warning",
	"1 while the agent warns of something of that kind: its log and pleach status say of what.", []string{"kind"}, nil)

// Describe implements [prometheus.Collector].
func (m warningMetrics) Describe(to chan<- *prometheus.Desc) { to <- warningDescription }

// Collect implements [prometheus.Collector].
func (m warningMetrics) Collect(to chan<- prometheus.Metric) {
	now := m.agent.groupWarnings(m.agent.group.Load())
	for _, kind := range api.WarningKinds {
		value := 0.0
		if slices.ContainsFunc(now, func(w api.Warning) bool { return w.Kind == kind }) {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(warningDescription, prometheus.GaugeValue, value, kind)
	}
}

// refusalMetrics count what the API has refused.
type refusalMetrics struct{ refused func(reason string) uint64 }

var refusalDescription = prometheus.NewDesc("pleach_agent_api_refused_total",
	"Connections and requests that the HTTP listeners have refused: for want of room, or of a right.",
	[]string{"reason"}, nil)

// Describe implements [prometheus.Collector].
func (m refusalMetrics) Describe(to chan<- *prometheus.Desc) { to <- refusalDescription }

// Collect implements [prometheus.Collector].
func (m refusalMetrics) Collect(to chan<- prometheus.Metric) {
	for _, reason := range api.RefusalReasons {
		to <- prometheus.MustNewConstMetric(refusalDescription, prometheus.CounterValue, float64(m.refused(reason)), reason)
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

var _ api.Agent = (*Agent)(nil)
