package relay

import (
	"maps"
	"slices"
)

// LinkState is what a lead knows of its link to a zone, for people to see.
type LinkState struct {
	Zone      string
	Connected bool // the zone is in the backbone
	Gateway   int  // its rank in the backbone, or -1
	// Lag counts the messages of this zone that the other one has not acknowledged, and
	// LagBytes their cost.
	Lag      uint64
	LagBytes int
	// Heard is when something has arrived from the zone; 0: never.
	Heard Time
}

// Links returns the links of a lead to all zones that it knows, by name, and to those that it
// waits for although it has not met them: people see then why origins wait.
func (m *Machine) Links() (links []LinkState) {
	if !m.active {
		return nil
	}
	zones := slices.Concat(m.zones, slices.Collect(maps.Keys(m.summaries)), slices.Collect(maps.Keys(m.away)))
	slices.Sort(zones)
	for _, zone := range slices.Compact(zones) {
		if zone != m.self.Zone {
			links = append(links, m.linkState(zone))
		}
	}
	return links
}

// linkState describes a link. A zone that is not in the backbone has at least what all zones
// had.
func (m *Machine) linkState(zone string) LinkState {
	s := LinkState{Zone: zone, Connected: m.present(zone), Gateway: -1, Heard: m.contacts[zone]}
	l := m.links[zone]
	if l != nil {
		s.Gateway = l.gateway.Rank
	}
	for _, of := range m.sorted {
		if !of.own {
			continue
		}
		has := of.acked
		if l != nil {
			has = max(has, l.acked[of.origin])
		}
		if at := of.position(); at > has {
			s.Lag += at - has
			s.LagBytes += of.bytes(has, at)
		}
	}
	return s
}
