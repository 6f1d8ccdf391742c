package backbone

import "slices"

const (
	// searchInterval is the time between two rounds of questions for zones that are missing.
	searchInterval = 2 * second
	// quorumTimeout is how long a delegate stays in a backbone without a quorum.
	quorumTimeout = 3 * second
	// maxSmaller is in how many rounds a lead finds a smaller backbone before it enters that one.
	maxSmaller = 3
	// maxApart is how often a delegate finds its lead in another backbone before it follows.
	maxApart = 2
	// maxSearch bounds the time to the first round in a backbone. It doubles each time that this
	// process has left one for another one that it could not enter.
	maxSearch = 120 * second
)

// inside is a membership in a backbone.
type inside struct {
	address string // of this process
	view    View
	due     Time // of the next round; Never while there is one, or no view
	loses   Time // when this process leaves because there is no quorum; Never: there is one
	smaller int  // rounds in a row that have found a smaller backbone
	apart   int  // rounds in a row in which the lead was in another backbone
}

// Installed takes a view of the backbone.
func (m *Machine) Installed(now Time, v View) {
	m.now = now
	i := &m.inside
	if m.stage != serving || len(v.Members) == 0 {
		return
	}
	if len(i.view.Members) == 0 {
		m.arrive(&v)
	}
	i.view = v
	switch {
	case v.Quorum:
		i.loses = Never
		m.remember(&v)
	case i.loses == Never:
		i.loses = now + quorumTimeout
	}
}

// arrive takes the first view of a backbone. It shows whether this is the one that this process has
// left the last one for.
func (m *Machine) arrive(v *View) {
	switch {
	case m.better == "":
	case v.has(m.better):
		m.vain = 0
	default:
		m.vain++
	}
	m.better = ""
	m.inside.due = m.now + min(searchInterval<<min(m.vain, 10), maxSearch)
}

// remember notes the addresses of delegates.
func (m *Machine) remember(v *View) {
	fresh := make(map[string]bool)
	for _, o := range v.Members {
		if !fresh[o.Zone] {
			fresh[o.Zone], m.known[o.Zone] = true, nil
		}
		m.known[o.Zone] = append(m.known[o.Zone], o.Address)
	}
}

// serve does the pending work of a delegate in a backbone.
func (m *Machine) serve() {
	switch i := &m.inside; {
	case !m.delegate() || i.loses <= m.now:
		m.leave("")
	case i.due > m.now:
	case m.lead():
		m.searchOthers()
	default:
		m.followLead()
	}
}

// leave leaves the backbone, for that of a delegate at an address unless that is empty.
func (m *Machine) leave(better string) {
	m.better = better
	m.act(leaving, Leave{})
}

// followLead leaves the backbone if the lead is in another one.
func (m *Machine) followLead() {
	i := &m.inside
	i.due = m.now + searchInterval
	if m.zone.Lead == "" || i.view.has(m.zone.Lead) {
		i.apart = 0
		return
	}
	i.apart++
	if i.apart == maxApart {
		m.leave(m.zone.Lead)
	}
}

// searchOthers asks the zones that are not in this backbone for theirs.
func (m *Machine) searchOthers() {
	missing := slices.DeleteFunc(m.otherZones(), m.inside.view.hasZone)
	m.inside.due = Never
	m.begin()
	m.askZones(missing)
	if len(missing) == 0 {
		m.endSearch()
	}
}

// foundElsewhere takes the backbone of a zone that is not in this one. If it is larger, this process
// leaves for it.
func (m *Machine) foundElsewhere(f *Found) {
	i, other := &m.inside, &f.View
	if len(other.Members) > 0 && other.Quorum && !other.has(i.address) {
		switch leader := other.Members[0].Address; i.view.compare(other) {
		case 1:
			m.leave(leader)
			return
		case -1:
			m.round.smaller = leader
		}
	}
	if m.round.open == 0 {
		m.endSearch()
	}
}

// endSearch ends a round. A smaller backbone whose delegates do not come may not know where: this
// process enters it, so that they know its address.
func (m *Machine) endSearch() {
	i := &m.inside
	i.due = m.now + searchInterval
	i.smaller++
	switch {
	case m.round.smaller == "":
		i.smaller, m.vain = 0, 0
	case i.smaller == maxSmaller:
		m.leave(m.round.smaller)
	}
}

// Left takes that this process is no longer in the backbone.
func (m *Machine) Left(now Time) {
	m.now = now
	m.act(left, Announce{})
}
