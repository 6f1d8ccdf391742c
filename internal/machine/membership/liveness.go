package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// evidence is a kind of evidence against a member: a column of the table of liveness.
type evidence int

// The kinds of evidence. Suspicions are none of them: a detector or another member reports them,
// about one incarnation, and they survive a view (suspicions). Only suspicions and silence leave a
// member out of the next view.
//
//	kind         recorded about a member that                   ends with               consequence
//	silent       delays a change beyond this member's patience  an answer, an attempt   left out of the next view
//	unheard      does not answer reports                        any frame               reports go to the next rank
//	abstaining   says that it cannot reach the others           a status, an attempt    the next rank coordinates
//	awaited      did not acknowledge a failed attempt           an answer               pinged before the next attempt
//	asked        is asked for a sign of life in this round      any traffic             asked again
//	lost         gave none in a whole round                     any traffic             none but for the quorum
//
// Members that are silent, unheard or lost do not count for this member's quorum.
const (
	silent evidence = iota
	unheard
	abstaining
	awaited
	asked
	lost
	evidenceKinds
)

// liveness is the table: the members of the view with evidence of each kind; nil: none. It is empty
// when a view begins.
type liveness [evidenceKinds]set

// record adds evidence against members, by their indices.
func (m *Machine) record(kind evidence, members ...int) {
	if m.live[kind] == nil {
		m.live[kind] = newSet(m.view.Members.Len())
	}
	for _, i := range members {
		m.live[kind].add(i)
	}
}

// clear ends evidence of a kind against a member, and against others. It reports whether there was
// any.
func (m *Machine) clear(kind evidence, r protocol.Rank, others set) bool {
	return m.live[kind].drop(&m.view, r, others)
}

// heard takes a frame of a member of the view.
func (m *Machine) heard(from protocol.Rank) {
	m.clear(unheard, from, nil)
	if e := &m.reporter; from == e.to {
		e.heard = m.now
		if e.asked > 0 {
			m.learnFromCoordinator(m.now - e.asked)
			e.asked = 0
		}
	}
}

// answered takes an answer of a member, and of those it acknowledges for.
func (m *Machine) answered(by protocol.Rank, others set) {
	m.awaitedAnswered(by, others)
	m.clear(silent, by, others)
}

// attempts takes an attempt of a coordinator at the next view.
func (m *Machine) attempts(r protocol.Rank) {
	m.answered(r, nil)
	m.clear(abstaining, r, nil)
	m.silence.asked = 0
}

// Heard takes a sign of life of a member. It reports whether the member was unreachable for
// want of one.
func (m *Machine) Heard(from protocol.Rank) (again bool) {
	m.clear(asked, from, nil)
	return m.clear(lost, from, nil)
}

// unreachable returns the members that are suspected, those that are silent, excused or
// not, those that do not answer reports, and those that do not answer probes. It is nil if
// there are none, as usual.
func (m *Machine) unreachable() set {
	return m.suspectedOr(m.live[silent], m.live[unheard], m.live[lost])
}

// excluded returns the members to leave out of the next view: those that are
// suspected, and those that are silent unless that is excused. It is nil if there are
// none, as usual.
func (m *Machine) excluded() set {
	if m.silence.excused {
		return m.suspected()
	}
	return m.suspectedOr(m.live[silent])
}

// suspectedOr returns the members that are suspected, and further ones.
func (m *Machine) suspectedOr(others ...set) set {
	s := m.suspected()
	for _, o := range others {
		switch {
		case o.count() == 0:
		case s == nil:
			s = slices.Clone(o)
		default:
			s.union(o)
		}
	}
	return s
}

// survivors returns the members that are not excluded.
func (m *Machine) survivors(excluded set) set { return excluded.complement(m.view.Members.Len()) }

// lowest returns the lowest voter that is not excluded and does not abstain: the
// coordinator, as far as this member knows. If all abstain, none does. There is a
// coordinator, since no voter excludes itself. An observer that excludes all voters has no
// quorum, and its lowest voter remains the one to ask.
func (m *Machine) lowest(excluded set) protocol.Rank {
	first := m.electorate.lowest
	for i := first; i < m.view.Members.Len(); i++ {
		if excluded.has(i) || !m.electorate.has(i) {
			continue
		}
		if m.coordinates(i) {
			return m.view.Members.At(i).Rank
		}
		if excluded.has(first) {
			first = i
		}
	}
	return m.view.Members.At(first).Rank
}

// nextHeard returns the receiver of reports: the coordinator, or the next voter before this
// member that answers. If there is none, the coordinator may answer later. A member that gets no
// answer does not accuse the coordinator: only the link between the two may be broken. So a member
// that does not coordinate relays reports, and only to voters before it: otherwise two members could
// keep a report alive that its source has withdrawn.
func (m *Machine) nextHeard(excluded set, coordinator protocol.Rank) protocol.Rank {
	for i := m.electorate.lowest; i < m.view.Members.Len() && m.before(i); i++ {
		if !excluded.has(i) && m.coordinates(i) && !m.live[unheard].has(i) {
			return m.view.Members.At(i).Rank
		}
	}
	return coordinator
}

// before reports whether reports of this member may go to a voter: to one of a lower rank, and an
// observer, to which none are sent, may tell any. Relays are, and pass on to lower ranks only.
func (m *Machine) before(voter int) bool {
	return voter < m.self || !m.electorate.has(m.self) && len(m.relayLevels()) == 0
}

// coordinates reports whether a member is a voter and does not abstain. A coordinator that lacks the means to reach
// others, such as file descriptors, reaches some of them at a time and never all at once: its
// attempts fail, and its pings keep it from being silent. It abstains: it stays a member, and the
// next rank coordinates. Ballots keep the agreement safe while members do not know yet which of
// them coordinates.
func (m *Machine) coordinates(i int) bool {
	switch {
	case !m.electorate.has(i):
		return false
	case i == m.self:
		return !m.abstains
	}
	return !m.live[abstaining].has(i)
}

// SetImpaired says whether this process lacks the means to reach others. While it does,
// their silence is no evidence against them. If it coordinates and an attempt fails, it
// abstains.
func (m *Machine) SetImpaired(impaired bool) {
	m.impaired = impaired
	m.abstains = m.abstains && impaired // the next status or attempt of this member says so
}

// abstain hands over to the next rank after a failed attempt, if the failure may be this
// member's own fault. Without majorities, two coordinators make two groups.
func (m *Machine) abstain() {
	m.abstains = m.abstains || m.impaired && !m.config.NoQuorum
}

// sendAbstention answers a member that treats this one as the coordinator.
func (m *Machine) sendAbstention(to protocol.Rank) {
	if m.abstains {
		m.put(to, frame{kind: Status})
	}
}

// noteAbstention takes a status of another member, which says whether that member abstains.
func (m *Machine) noteAbstention(r protocol.Rank, abstains bool) {
	i, ok := m.view.index(r)
	switch {
	case ok && abstains:
		m.record(abstaining, i)
	case ok:
		m.clear(abstaining, r, nil)
	}
}
