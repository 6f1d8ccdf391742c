package membership

import "github.com/pleach-go/pleach/protocol"

// Deadline is when Next must be called again though nothing has happened, or
// Never.
func (m *Machine) Deadline() protocol.Time {
	due := m.commitCast.due
	if m.done != nil {
		return due
	}
	due = min(due, m.status.due, m.reporter.due)
	for _, p := range m.pending {
		due = min(due, p.until)
	}
	if m.acceptor.decided != nil {
		return due
	}
	if m.proposer != nil {
		return min(due, m.proposer.resend, m.proposer.deadline, m.proposer.restart)
	}
	if s := &m.acceptor.silence; s.asked > 0 {
		due = min(due, s.asked+2*m.config.AckTimeout)
	}
	// What these allow has been done if it could be; then something else has
	// to happen first.
	for _, t := range []protocol.Time{m.pause, m.window.due(m.config.BatchWindow)} {
		if t > m.now {
			due = min(due, t)
		}
	}
	return due
}

// tick does what is due.
func (m *Machine) tick(now protocol.Time) {
	if m.done == nil {
		m.expireJoins(now)
		m.consider(now)
		m.attempt(now)
		m.runProposer(now)
		if m.reporter.due <= now {
			m.runReporter(now)
		}
		if m.status.due <= now {
			m.runStatus(now)
		}
	}
	m.runCommitCast(now)
}

// consider decides, after anything has happened, what this member now has to do
// about the next view: nothing, tell the coordinator, or coordinate.
// An attempt begins only once all that was to be sent is, by tick: what is
// reported until then is in it.
func (m *Machine) consider(now protocol.Time) {
	if m.done != nil || m.acceptor.decided != nil {
		return
	}
	if m.leaving && len(m.view.Members) == 1 {
		m.end(ErrLeft) // nobody is left to agree with
		return
	}
	m.forgetCandidates(now)
	m.considerSilence(now)
	excluded := m.excluded(now)
	coordinator := m.lowest(excluded)
	m.planReport(now, coordinator)
	if coordinator == m.config.Self.Rank {
		m.handleOwnRequests(now)
	}
	if m.proposer != nil {
		m.reconsider(now, excluded, coordinator)
	}
}

// attempt begins to change the view if that is up to this member.
func (m *Machine) attempt(now protocol.Time) {
	if m.done != nil || m.acceptor.decided != nil || m.proposer != nil || now < m.pause {
		return
	}
	excluded := m.excluded(now)
	if m.lowest(excluded) != m.config.Self.Rank || !m.wants(now, excluded) {
		return
	}
	number := m.view.Number
	if m.begin(now, m.survivors(excluded)); m.view.Number != number { // alone, it has already decided
		m.consider(now)
		m.attempt(now)
	}
}

// wants reports whether there is a reason to change the view: at once for those
// who are dead, after a while for those who come and go, and to bring to an end
// what somebody else has begun.
func (m *Machine) wants(now protocol.Time, excluded set) bool {
	return excluded.count() > 0 || m.acceptor.stuck || m.window.due(m.config.BatchWindow) <= now
}

// window is the time in which those who join and leave are collected.
type window struct {
	open        bool
	first, last protocol.Time
}

func (w *window) note(now protocol.Time) {
	if !w.open {
		w.open, w.first = true, now
	}
	w.last = now
}

func (w *window) due(length protocol.Time) protocol.Time {
	if !w.open {
		return protocol.Never
	}
	return min(w.last+length, w.first+5*length)
}
