package stream

import "github.com/pleach-go/pleach/protocol"

// Timers: every flow has its deadlines, and the member the earliest of all.

// Deadline returns when Next must be called again even if nothing happens, or Never.
func (m *Member) Deadline() protocol.Time { return m.due }

// schedule ensures that tick looks at a flow by time t.
func (m *Member) schedule(f *flow, t protocol.Time) {
	if !f.scheduled {
		f.scheduled = true
		m.scheduled = append(m.scheduled, f)
	}
	m.due = min(m.due, t)
}

// tick runs the pending work of all timers, and drops flows from the schedule that have nothing left to
// do. One that waits for room in the inbox stays: Deliver looks for it there.
func (m *Member) tick(now protocol.Time) {
	if now < m.due {
		return
	}
	m.due = protocol.Never
	if m.own.pollDue <= now {
		m.poll(now)
	}
	if m.own.processedDue <= now {
		m.pollProcessed(now)
	}
	if m.retryDue <= now {
		m.retryDown(now)
	}
	if m.own.creditDue <= now {
		m.pollCredit(now)
	}
	m.due = min(m.own.pollDue, m.own.processedDue, m.own.creditDue, m.retryDue)
	m.expireBacklogs(now)
	kept := m.scheduled[:0]
	for _, f := range m.scheduled {
		if f.correction.due <= now && !f.correction.yield(now, m.skew.lead()) {
			m.runCorrection(now, f)
		}
		if f.pull.due <= now {
			m.requestMissing(now, f)
		}
		if f.tailProbe.due <= now {
			m.sendTailProbe(now, f)
		}
		if f.foster.due <= now {
			m.findFoster(f)
		}
		next := min(f.correction.due, f.pull.due, f.tailProbe.due, f.foster.due)
		if next == protocol.Never && (!m.inbox.refusing || f.next >= f.wanted) {
			f.scheduled = false
			continue
		}
		m.due = min(m.due, next)
		kept = append(kept, f)
	}
	clear(m.scheduled[len(kept):])
	m.scheduled = kept
}
