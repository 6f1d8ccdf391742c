package membership

import "github.com/pleach-go/pleach/protocol"

// A coordinator that lacks the means to reach others, as file descriptors, reaches some
// of them at a time and never all at once. So its attempts fail, and its pings keep the
// others from taking it for silent. Such a member abstains: it stays a member, and the
// next rank coordinates. Ballots keep the agreement safe while members do not know yet
// which of them coordinates.

// SetImpaired says whether this process lacks the means to reach others. While it does,
// their silence is no evidence against them. If it coordinates and an attempt fails, it
// abstains.
func (m *Machine) SetImpaired(impaired bool) {
	m.impaired = impaired
	if !impaired {
		m.abstains = false // others learn it from its next status or attempt
	}
}

// abstain hands over to the next rank after a failed attempt, if the failure may be this
// member's own fault. Without majorities, two coordinators make two groups.
func (m *Machine) abstain() {
	if m.impaired && !m.abstains && !m.config.NoQuorum {
		m.abstains = true
	}
}

// tellAbstention answers a member that takes this one for the coordinator.
func (m *Machine) tellAbstention(to protocol.Rank) {
	if m.abstains {
		m.put(to, frame{kind: Status})
	}
}

// noteAbstention records whether another member abstains, as it says.
func (m *Machine) noteAbstention(r protocol.Rank, abstains bool) {
	i, ok := m.view.index(r)
	switch s := &m.acceptor.abstaining; {
	case ok && abstains:
		if *s == nil {
			*s = newSet(m.view.Members.Len())
		}
		s.add(i)
	case ok && s.has(i):
		s.remove(i)
	}
}

// coordinates reports whether a member does not abstain.
func (m *Machine) coordinates(i int) bool {
	if i == m.self {
		return !m.abstains
	}
	return !m.acceptor.abstaining.has(i)
}

// lowest returns the lowest rank that is not excluded and does not abstain: the
// coordinator, as far as this member knows. If all abstain, none does. There is a
// coordinator, since no member excludes itself.
func (m *Machine) lowest(excluded set) protocol.Rank {
	first := -1
	for i := range m.view.Members.Len() {
		if excluded.has(i) {
			continue
		}
		if m.coordinates(i) {
			return m.view.Members.At(i).Rank
		}
		if first < 0 {
			first = i
		}
	}
	return m.view.Members.At(first).Rank
}
