package stream

import "github.com/pleach-go/pleach/protocol"

// Deadline is when Next must be called again though nothing has happened, or
// Never.
func (m *Member) Deadline() protocol.Time { return m.due }

// schedule sees to it that a flow is looked at by time t.
func (m *Member) schedule(f *flow, t protocol.Time) {
	if !f.reminder.timed {
		f.reminder.timed = true
		m.timed = append(m.timed, f)
	}
	m.due = min(m.due, t)
}

// tick does what is due, and forgets flows that have nothing left to do. One that
// waits for room in the inbox has: Deliver looks for it.
func (m *Member) tick(now protocol.Time) {
	if now < m.due {
		return
	}
	m.due = protocol.Never
	if m.own.pollDue <= now {
		m.poll(now)
	}
	if m.retryDue <= now {
		m.retry(now)
	}
	m.due = min(m.own.pollDue, m.retryDue)
	m.expire(now)
	m.leaveLaggards(now)
	kept := m.timed[:0]
	for _, f := range m.timed {
		if f.correction.due <= now {
			m.runCorrection(now, f)
		}
		if f.asking.due <= now {
			m.request(now, f)
		}
		if f.reminder.due <= now {
			m.remindNow(now, f)
		}
		next := min(f.correction.due, f.asking.due, f.reminder.due)
		if next == protocol.Never && (!m.inbox.refusing || f.next >= f.wanted) {
			f.reminder.timed = false
			continue
		}
		m.due = min(m.due, next)
		kept = append(kept, f)
	}
	clear(m.timed[len(kept):])
	m.timed = kept
}
