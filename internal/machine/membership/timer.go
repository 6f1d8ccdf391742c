package membership

import "github.com/pleach-go/pleach/protocol"

// Deadline returns when Next must be called again if nothing else happens, or Never.
func (m *Machine) Deadline() protocol.Time {
	m.pace.wake = m.deadline()
	return m.pace.wake
}

func (m *Machine) deadline() protocol.Time {
	due := m.commitCast.due
	if m.done != nil {
		return due
	}
	due = min(due, m.status.due, m.reporter.due, m.doubtDue())
	for i := range m.pending {
		due = min(due, m.pending[i].until, m.pending[i].next())
	}
	if m.acceptor.decided != nil || m.unsaved() {
		return due
	}
	if m.proposer != nil {
		return min(due, m.proposer.resend, m.proposer.deadline, m.proposer.restart)
	}
	if s := &m.silence; s.asked > 0 {
		due = min(due, s.asked+2*m.patience())
	}
	// What a time in the past allows is done already, or waits for another event.
	times := []protocol.Time{m.pause, m.quietAt(), m.claims.again, m.window.due(m.config.BatchWindow)}
	if m.pings(m.now) {
		times = append(times, m.awaiting.due)
	}
	for _, t := range times {
		if t > m.now {
			due = min(due, t)
		}
	}
	return due
}

// tick runs the pending work of all timers.
func (m *Machine) tick(now protocol.Time) {
	m.pace.awake(now, m.config.RetryInterval)
	if m.done == nil {
		m.expireJoins(now)
		m.expireReports(now)
		m.runProbes(now)
		m.runDoubt(now)
		m.consider(now)
		m.attempt(now)
		if !m.unsaved() {
			m.runProposer(now)
			m.runPings(now)
		}
		if m.reporter.due <= now {
			m.runReporter(now)
		}
		if m.status.due <= now {
			m.runStatus(now)
		}
	}
	m.runCommitCast(now)
}

// consider decides what this member does about the next view:
// nothing, report to the coordinator, or coordinate. A new attempt begins only in
// tick, when the outbox is empty, so that it includes everything reported until then.
func (m *Machine) consider(now protocol.Time) {
	if m.done != nil || m.acceptor.decided != nil {
		return
	}
	if m.leaving && m.view.Members.Len() == 1 {
		m.end(ErrLeft) // no other member is left to agree with
		return
	}
	m.forgetCandidates(now)
	m.considerSilence(now)
	m.withdrawEvictions()
	excluded := m.excluded()
	m.acceptor.news.note(now, excluded)
	coordinator := m.lowest(excluded)
	m.planReport(now, excluded, coordinator)
	if coordinator == m.config.Self.Rank {
		m.handleOwnRequests(now)
	}
	if m.proposer != nil {
		m.reconsider(now, excluded, coordinator)
	}
}

// attempt begins to change the view if this member coordinates.
func (m *Machine) attempt(now protocol.Time) {
	m.claims.side = nil
	if m.done != nil || m.acceptor.decided != nil || m.proposer != nil || now < max(m.pause, m.quietAt()) {
		return
	}
	excluded := m.excluded()
	if m.lowest(excluded) != m.config.Self.Rank || !m.wants(now, excluded) || !excluded.covers(m.live[awaited]) {
		return
	}
	m.begin(now, m.survivors(excluded))
}

// wants reports whether there is a reason to change the view: members to exclude, the
// end of the batch window for joins and leaves, an attempt of another member that
// must be completed, or a claim to the view.
func (m *Machine) wants(now protocol.Time, excluded set) bool {
	return excluded.count() > 0 || m.acceptor.stuck || m.claims.asked || m.window.due(m.config.BatchWindow) <= now
}

// window is the time in which joins and leaves are batched into one view.
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
