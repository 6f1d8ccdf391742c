package membership

import "github.com/pleach-go/pleach/protocol"

// errand is what this member wants of the coordinator, told again and again
// until a view settles it: its suspicions, its own leave, and those who knock.
// Nothing is said only once, so that no lost frame makes anybody wait forever.
type reporter struct {
	due       protocol.Time // Never: nothing to tell
	tries     int
	to        protocol.Rank // who was told last
	fresh     bool          // there is something new to tell
	withdrawn bool          // tell that nothing is suspected any more
}

// changed has it told at once.
func (e *reporter) changed() { e.fresh = true }

// plan decides when to tell whom, after anything has happened.
func (m *Machine) planReport(now protocol.Time, coordinator protocol.Rank) {
	e := &m.reporter
	if coordinator == m.config.Self.Rank || !m.hasReport() {
		e.due, e.to, e.fresh, e.withdrawn = protocol.Never, coordinator, false, false
		return
	}
	if e.fresh || e.to != coordinator || e.due == protocol.Never {
		*e = reporter{due: now, to: coordinator, withdrawn: e.withdrawn}
	}
}

func (m *Machine) hasReport() bool {
	return len(m.suspicions.own)+m.acceptor.silence.members.count() > 0 || m.reporter.withdrawn || m.leaving || len(m.pending) > 0
}

// runErrand tells the coordinator. Suspicions go to whoever is attempting a
// change as well: it may wait for just the one who is suspected.
func (m *Machine) runReporter(now protocol.Time) {
	e := &m.reporter
	e.due = now + m.backoff(e.tries)
	e.tries++
	if accused := m.accused(e.to); len(accused) > 0 || e.withdrawn {
		report := frame{kind: Report, suspects: accused}
		m.put(e.to, report)
		if proposer := m.acceptor.promised.Rank; m.acceptor.frozen && proposer != e.to && proposer != m.config.Self.Rank {
			m.put(proposer, report)
		}
		e.withdrawn = false
	}
	if m.leaving {
		m.put(e.to, frame{kind: Leave})
	}
	for _, p := range m.pending {
		m.put(e.to, frame{kind: JoinRequest, candidate: p.candidate})
	}
}

// backoff is how long to wait before a next try.
func (m *Machine) backoff(tries int) protocol.Time {
	return m.config.RetryInterval * protocol.Time(min(1<<min(tries, 10), maxBackoff))
}
