package membership

import "github.com/pleach-go/pleach/protocol"

// awaiting keeps a member that does not answer from freezing the others again and
// again. An attempt freezes its participants, so the first one waits only briefly. The
// participants that have not acknowledged it are awaited: the coordinator pings them,
// which freezes no member, and attempts the change again once all of them have
// answered or are excluded.
type awaiting struct {
	since  protocol.Time // when the wait began, or the last one of them answered
	pinged int           // how many were pinged together first
	first  protocol.Time // when that was; 0: not yet, or most of them have answered
	due    protocol.Time // of the next ping; in the past: at once
	tries  int
	shown  protocol.Time // when all were last shown that the coordinator is not silent
}

// await awaits participants of an attempt that has failed.
func (m *Machine) await(now protocol.Time, missing []int) {
	m.awaiting, m.live[awaited] = awaiting{since: now, shown: now}, nil
	m.record(awaited, missing...)
}

// awaitedAnswered ends the wait for a member, and for those it acknowledges for.
func (m *Machine) awaitedAnswered(by protocol.Rank, others set) {
	if !m.clear(awaited, by, others) {
		return
	}
	a := &m.awaiting
	a.since = m.now
	if a.first > 0 && 2*m.live[awaited].count() <= a.pinged {
		m.learnAnswers(a.first)
		a.first = 0
	}
}

// pings reports whether this member coordinates a change and waits for answers.
func (m *Machine) pings(now protocol.Time) bool {
	if m.proposer != nil {
		return false
	}
	excluded := m.excluded()
	return !excluded.covers(m.live[awaited]) && m.lowest(excluded) == m.config.Self.Rank && m.wants(now, excluded)
}

// runPings pings the awaited members, and now and then all. Those that stay silent are
// eventually left out.
func (m *Machine) runPings(now protocol.Time) {
	a := &m.awaiting
	if a.due > now || m.acceptor.decided != nil || !m.pings(now) {
		return
	}
	if m.acceptor.tried == 0 { // another change than the one that failed
		m.acceptor.tried, a.since = now, now
	}
	survivors := m.survivors(m.excluded())
	missing := m.live[awaited].common(survivors)
	if a.tries == 0 {
		a.pinged, a.first = m.live[awaited].count(), now
	}
	a.due = now + m.askAgain(a.tries)
	a.tries++
	pinged := missing
	if now >= a.shown+m.config.AckTimeout/2 {
		a.shown, pinged = now, survivors
	}
	for _, r := range m.others(pinged.each()) {
		m.put(r, frame{kind: Ping})
	}
	if end := a.since + m.patience(); now >= end {
		m.silenced(missing.each()...)
	} else {
		a.due = min(a.due, end)
	}
}
