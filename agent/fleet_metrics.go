package agent

import (
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pleach-go/pleach/fleet"
)

// fleetMetrics are what an agent knows of its fleet, for Prometheus. Only the lead of a zone
// has those of links.
type fleetMetrics struct{ fleet *fleet.Fleet }

var (
	fleetLead = prometheus.NewDesc("pleach_fleet_lead", "1 if this agent sends the messages of its zone to others.",
		nil, nil)
	fleetMembers = prometheus.NewDesc("pleach_fleet_members", "Members of a zone, as it has told last.",
		[]string{"zone"}, nil)
	fleetAge = prometheus.NewDesc("pleach_fleet_summary_age_seconds", "Time since a zone has told about itself.",
		[]string{"zone"}, nil)
	linkUp  = prometheus.NewDesc("pleach_fleet_link_up", "1 if another zone is in the backbone.", []string{"to"}, nil)
	linkLag = prometheus.NewDesc("pleach_fleet_link_lag_messages", "Messages that another zone has not acknowledged.",
		[]string{"to"}, nil)
	linkBytes   = prometheus.NewDesc("pleach_fleet_link_lag_bytes", "What these messages take.", []string{"to"}, nil)
	linkContact = prometheus.NewDesc("pleach_fleet_link_contact_seconds",
		"Time since something has come from another zone; -1: never.", []string{"to"}, nil)
)

// Describe implements [prometheus.Collector].
func (m fleetMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{fleetLead, fleetMembers, fleetAge, linkUp, linkLag, linkBytes, linkContact} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (m fleetMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) { emit(ch, d, value, labels...) }
	gauge(fleetLead, number(m.fleet.Stats().Lead))
	for _, z := range m.fleet.Zones() {
		gauge(fleetMembers, float64(z.Members), z.Zone)
		gauge(fleetAge, z.Age.Seconds(), z.Zone)
	}
	for _, l := range m.fleet.Links() {
		gauge(linkUp, number(l.Connected), l.Zone)
		gauge(linkLag, float64(l.Lag), l.Zone)
		gauge(linkBytes, float64(l.LagBytes), l.Zone)
		gauge(linkContact, contact(l.Heard), l.Zone)
	}
}

// emit emits a metric. It leaves out one whose label is not UTF-8, which Prometheus does not allow: the
// zones of others choose their names.
func emit(ch chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	for _, l := range labels {
		if !utf8.ValidString(l) {
			return
		}
	}
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// contact is a time since something was heard in seconds, or -1.
func contact(heard time.Duration) float64 {
	if heard < 0 {
		return -1
	}
	return heard.Seconds()
}
