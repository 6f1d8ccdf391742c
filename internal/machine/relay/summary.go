package relay

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Zones tell each other how many members they have. Leads send that to the gateways when it
// changes, and every few seconds, and broadcast in their zones what they have heard. It is
// no agreement: two members may know different summaries, and each is as old as it says.

// Summary is what a zone tells about itself.
type Summary struct {
	Zone    string
	Members int
	View    uint64
	Healthy bool
	// Version is the protocol version of the zone; 0: it is below 7.
	Version uint16
	// Heard is when this member has heard it.
	Heard Time
}

// Intervals of summaries: at most one in the first, at least one in the second.
const (
	minSummary = Time(1e9)
	maxSummary = Time(5e9)
)

// news is what a member knows of all zones.
type news struct {
	*journal
	lead         *shipping
	summaries    map[string]Summary
	ownSummary   Summary
	summaryDue   bool // ownSummary has changed
	summariesNew bool // another zone's has changed
	lastSummary  Time
	contacts     map[string]Time // when something has arrived from a zone over the backbone
}

// versionShift is where the number of members has the version of the zone. Members of protocol
// version 6 ignore what is there, and write 0.
const versionShift = 31

func (s *Summary) append(b []byte) []byte {
	b = appendString(b, s.Zone)
	b = binary.AppendUvarint(b, uint64(s.Members)|uint64(s.Version)<<versionShift)
	b = binary.AppendUvarint(b, s.View)
	if s.Healthy {
		return append(b, 1)
	}
	return append(b, 0)
}

func (d *decoder) summary() Summary {
	s := Summary{Zone: d.text()}
	members := d.number()
	s.Members, s.Version = int(members&(1<<versionShift-1)), uint16(members>>versionShift)
	s.View, s.Healthy = d.number(), d.number() == 1
	return s
}

// SetSummary sets what this zone tells about itself.
func (m *Machine) SetSummary(now Time, s Summary) {
	if m.summaries[s.Zone] != s {
		m.summaryDue, m.ownSummary, m.summaries[s.Zone] = true, s, s
		m.step(now)
	}
}

// Summaries returns what is known of all zones, by name.
func (n *news) Summaries() []Summary {
	list := make([]Summary, 0, len(n.summaries))
	for _, zone := range slices.Sorted(maps.Keys(n.summaries)) {
		list = append(list, n.summaries[zone])
	}
	return list
}

// takeSummaries takes in what was heard, and reports whether it is new. A member counts its
// own zone itself.
func (n *news) takeSummaries(now Time, list []Summary) (news bool) {
	for _, s := range list {
		if s.Zone == n.self.Zone {
			continue
		}
		before := n.summaries[s.Zone]
		s.Heard = before.Heard
		news = news || s != before
		s.Heard = now
		n.summaries[s.Zone] = s
	}
	return news
}

// summarize sends summaries that are due, if this member leads.
func (n *news) summarize(now Time) {
	if !n.active || now < n.summaryDeadline() {
		return
	}
	own := &frame{kind: kindSummary, summaries: []Summary{n.ownSummary}}
	for _, zone := range n.zones {
		if l := n.lead.links[zone]; l != nil {
			n.send(l.gateway, own)
		}
	}
	n.cast(&frame{kind: kindSummary, summaries: n.Summaries()})
	n.summaryDue, n.summariesNew, n.lastSummary = false, false, now
}

func (n *news) summaryDeadline() Time {
	switch {
	case n.ownSummary.Zone == "":
		return never
	case n.lastSummary == 0:
		return 0
	case n.summaryDue || n.summariesNew:
		return n.lastSummary + minSummary
	}
	return n.lastSummary + maxSummary
}
