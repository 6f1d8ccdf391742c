package membership

import "github.com/pleach-go/pleach/protocol"

// A member answers reports that are repeated, with its status. The first one needs no
// answer: what follows from it, a ballot or a view, is one. A member that gets none from the
// coordinator, as one behind a cut, knows soon that it cannot reach it, and reports to the
// next rank. It does not accuse the coordinator: the link between the two may be all that
// is broken. So a member that does not coordinate passes reports on, and only to lower
// ranks, or two members could keep a report alive that its source has withdrawn.

// heard notes a frame of a member.
func (m *Machine) heard(from protocol.Rank) {
	m.acceptor.unheard.drop(&m.view, from, nil)
	if e := &m.reporter; from == e.to {
		e.heard = m.now
		if e.asked > 0 {
			m.learnFromCoordinator(m.now - e.asked)
			e.asked = 0
		}
	}
}

// awaitAnswer records that the receiver of this member's suspicions does not answer. A
// member that was paused begins to wait again.
func (m *Machine) awaitAnswer(now protocol.Time, paused bool) {
	e := &m.reporter
	if e.due == protocol.Never || !m.suspectsMember() || paused || m.acknowledged() {
		e.heard = now
		return
	}
	if r := &m.acceptor; now >= e.heard+m.config.answerTimeout() {
		if r.unheard == nil {
			r.unheard = newSet(m.view.Members.Len())
		}
		i, _ := m.view.index(e.to)
		r.unheard.add(i)
	}
}

// answerTimeout is how long a member may take to answer a report. It covers two reports.
func (c *Config) answerTimeout() protocol.Time {
	return max(c.ProbeTimeout, 2*maxBackoff*c.RetryInterval)
}

// nextHeard returns the receiver of reports: the coordinator, or the next rank below this
// member's that answers. If there is none, the coordinator may answer later.
func (m *Machine) nextHeard(excluded set, coordinator protocol.Rank) protocol.Rank {
	for i := range m.self {
		if !excluded.has(i) && m.coordinates(i) && !m.acceptor.unheard.has(i) {
			return m.view.Members.At(i).Rank
		}
	}
	return coordinator
}
