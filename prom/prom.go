// Package prom shows a member of a group to Prometheus.
//
//	registry.MustRegister(prom.New(group))
//
// A program that does not import it links nothing of it. All metrics have the label group.
// None has a label for other members, so their number does not grow with the group: what
// one member knows of each other one is in [pleach.Group.Status].
package prom

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pleach-go/pleach"
)

// New returns a collector for a member. Each scrape takes one [pleach.Status]. A process
// that is a member of several groups registers a collector for each.
func New(g *pleach.Group) prometheus.Collector {
	c := &collector{status: g.Status}
	labels := prometheus.Labels{"group": g.Status().Group}
	for _, m := range metrics {
		c.descs = append(c.descs, prometheus.NewDesc("pleach_"+m.name, m.help, m.labels, labels))
	}
	return c
}

// collector is one member.
type collector struct {
	status func() pleach.Status
	descs  []*prometheus.Desc // of metrics
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		descs <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := c.status()
	for i, m := range metrics {
		if m.delays != nil {
			to <- histogram(c.descs[i], m.delays(&s))
			continue
		}
		m.values(&s, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(c.descs[i], m.kind, value, labels...)
		})
	}
}

// metric is one metric: its name without the prefix, and how its values follow from a
// status.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	values     func(s *pleach.Status, emit func(value float64, labels ...string))
	delays     func(s *pleach.Status) *pleach.Propagation // in place of values, if it is a histogram
}

// histogram is a metric of the distribution of delays.
func histogram(desc *prometheus.Desc, p *pleach.Propagation) prometheus.Metric {
	buckets := make(map[float64]uint64, len(p.Buckets))
	for _, b := range p.Buckets {
		buckets[b.UpTo.Seconds()] = b.Count
	}
	return prometheus.MustNewConstHistogram(desc, p.Count, p.Sum.Seconds(), buckets)
}

// counter is a metric with one value that only grows.
func counter(name, help string, value func(*pleach.Status) uint64) metric {
	return metric{
		name: name, help: help, kind: prometheus.CounterValue,
		values: func(s *pleach.Status, emit func(float64, ...string)) {
			emit(float64(value(s)))
		},
	}
}

// gauge is a metric with one value.
func gauge(name, help string, value func(*pleach.Status) float64) metric {
	return metric{
		name: name, help: help, kind: prometheus.GaugeValue,
		values: func(s *pleach.Status, emit func(float64, ...string)) {
			emit(value(s))
		},
	}
}

// truth is 1 if b holds, and 0 otherwise.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// info names the member.
func info(s *pleach.Status, emit func(float64, ...string)) { emit(1, strconv.Itoa(s.Rank), s.ID) }

// segmentsSent counts segments by the way they went.
func segmentsSent(s *pleach.Status, emit func(float64, ...string)) {
	emit(float64(s.Stats.Relayed), "tree")
	emit(float64(s.Stats.Grafted), "graft")
	emit(float64(s.Stats.Repaired), "repair")
}
