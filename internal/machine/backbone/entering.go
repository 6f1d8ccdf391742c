package backbone

const (
	// createDelay is how long a lead that finds no backbone waits before it creates one while other
	// zones should, and another delegate before it no longer relies on its lead.
	createDelay = 5 * second
	// The pause between two rounds of questions to all zones doubles.
	minPause, maxPause = 100 * millisecond, 2 * second
	joinTimeout        = 15 * second
)

// entry is how a delegate without a backbone enters one.
type entry struct {
	hint  string // address of a delegate in the backbone that it has left the last one for; "": none
	since Time   // of being without one, or of the last attempt to join one
	pause Time   // after the next round
	due   Time   // of the next round; Never while there is one
	same  bool   // this process listens where it did in the last backbone
}

// enter begins to look for a backbone.
func (m *Machine) enter(hint string) {
	m.stage = looking
	m.entry = entry{hint: hint, since: m.now, pause: minPause, due: m.now, same: true}
}

// look asks for a backbone when it is time to. The lead asks all zones at the same time, its own
// included: after a partition, its delegates may have left theirs. The other delegates ask those of
// their zone, unless these have found none for long.
func (m *Machine) look() {
	e := &m.entry
	if !m.delegate() {
		m.act(waiting)
		return
	}
	if e.due > m.now {
		return
	}
	e.due = Never
	m.begin()
	if hint := e.hint; hint != "" {
		e.hint = ""
		m.askDelegates([]string{hint}, askTimeout)
		return
	}
	m.askDelegates(m.zone.Others, siblingTimeout)
	if m.lead() || m.lonely() {
		m.round.all, m.round.first = true, true
		e.pause = min(2*e.pause, maxPause)
		m.askZones(m.otherZones())
	}
}

// lonely reports whether no backbone was found for long.
func (m *Machine) lonely() bool { return m.now-m.entry.since > createDelay }

// foundToEnter takes an answer, and joins the backbone in it. The last answer of a round shows
// whether there is none. The zone that is the first of those that can be reached creates one then.
func (m *Machine) foundToEnter(f *Found) {
	if seeds := f.seeds(); len(seeds) > 0 {
		m.act(joining, Join{seeds, m.entry.same, joinTimeout})
		return
	}
	own := f.Zone == ""
	if f.Announced || own && len(f.Asked) > 0 || !own && f.Reachable && f.Zone < m.config.Zone {
		m.round.first = false
	}
	switch {
	case m.round.open > 0:
	case m.lead() && m.round.all && (m.round.first || m.lonely()):
		m.act(creating, Create{m.entry.same})
	default:
		m.entry.due = m.now + m.entry.pause
	}
}

// Failed takes that this process has not entered a backbone. Another process may have its address.
func (m *Machine) Failed(now Time) {
	m.now = now
	if m.stage == joining {
		m.entry.since = now
	}
	m.entry.same = false
	m.entry.due = now + m.entry.pause
	m.act(looking)
}

// Entered takes that this process is in a backbone now, and its address there.
func (m *Machine) Entered(now Time, address string) {
	m.now = now
	m.inside = inside{address: address, due: Never, loses: Never}
	m.act(serving, Announce{address})
}
