package membership

import "github.com/pleach-go/pleach/protocol"

// errand is what this member wants of the coordinator, told again and again
// until a view settles it: its suspicions, its own leave, and those who knock.
// Nothing is said only once, so that no lost frame makes anybody wait forever.
type errand struct {
	due       protocol.Time // Never: nothing to tell
	tries     int
	to        protocol.Rank // who was told last
	fresh     bool          // there is something new to tell
	withdrawn bool          // tell that nothing is suspected any more
}

// changed has it told at once.
func (e *errand) changed() { e.fresh = true }

// plan decides when to tell whom, after anything has happened.
func (m *Machine) planErrand(now protocol.Time, leader protocol.Rank) {
	e := &m.errand
	if leader == m.config.Self.Rank || !m.hasErrand() {
		e.due, e.to, e.fresh, e.withdrawn = protocol.Never, leader, false, false
		return
	}
	if e.fresh || e.to != leader || e.due == protocol.Never {
		*e = errand{due: now, to: leader, withdrawn: e.withdrawn}
	}
}

func (m *Machine) hasErrand() bool {
	return len(m.suspicions.own)+m.round.silence.members.count() > 0 || m.errand.withdrawn || m.leaving || len(m.pending) > 0
}

// runErrand tells the coordinator. Suspicions go to whoever is attempting a
// change as well: it may wait for just the one who is suspected.
func (m *Machine) runErrand(now protocol.Time) {
	e := &m.errand
	e.due = now + m.backoff(e.tries)
	e.tries++
	if accused := m.accused(e.to); len(accused) > 0 || e.withdrawn {
		report := frame{kind: Report, suspects: accused}
		m.put(e.to, report)
		if leads := m.round.promised.Rank; m.round.frozen && leads != e.to && leads != m.config.Self.Rank {
			m.put(leads, report)
		}
		e.withdrawn = false
	}
	if m.leaving {
		m.put(e.to, frame{kind: Leave})
	}
	for _, p := range m.pending {
		m.put(e.to, frame{kind: Knock, candidate: p.candidate})
	}
}

// backoff is how long to wait before a next try.
func (m *Machine) backoff(tries int) protocol.Time {
	return m.config.Resend * protocol.Time(min(1<<min(tries, 10), maxBackoff))
}
