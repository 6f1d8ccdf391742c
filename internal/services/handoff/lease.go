package handoff

// A lease: an owner serves while a majority of its view is known to be in it.

// Confirm says that a majority of the members of a view was in it at a moment after sent.
func (m *Machine) Confirm(now, sent Time, view uint64) {
	if m.c.Lease == 0 || view != m.view {
		return
	}
	m.agreed = min(m.agreed, now)
	if until := sent + m.c.Lease/5*4; until > m.until {
		m.until, m.lapsed = until, false
	}
}

// Vouches reports whether this process may tell others that it is in a view. One that did not
// run for a while may have missed the next view, and waits until it would know.
func (m *Machine) Vouches(now Time, view uint64) bool {
	return view == m.view && now >= m.awake && !m.slept(now)
}

// slept reports whether Tick is long overdue.
func (m *Machine) slept(now Time) bool { return m.ticked > 0 && now-m.ticked > m.c.Lease/5*2 }

// Suspend stops serving: this process has no quorum, or is not a member.
func (m *Machine) Suspend() { m.until = 0 }

// Until is when the lease ends.
func (m *Machine) Until() Time { return m.until }
