package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// silence is how long this member has waited for a coordinator that attempts nothing, although it
// is asked to. Silence is kept apart from suspicion, which a detector reports and withdraws: it
// ends with its cause, which is an answer, the reason to ask, or the view.
//
// If the silent members leave no majority, the fault may as well be this member's own (local
// health awareness: Dadgar, Phillips & Currey 2018, Lifeguard). Then no member is left out for its
// silence, and attempts include all.
type silence struct {
	excused     bool          // the silent members leave no majority
	asked       protocol.Time // since when this member asks for a change without result; 0: it does not ask
	coordinator protocol.Rank // the coordinator that it asks
	looked      protocol.Time // when awaitCoordinator last ran
}

// silenced records members that do not answer: they have delayed the change for longer
// than this member's patience, although no detector suspects them. Detectors may be
// blind, and such a member must not delay the others forever: the next attempt leaves
// it out.
func (m *Machine) silenced(members ...int) {
	if !m.impaired {
		m.record(silent, members...)
		m.silence.excused = false
	}
}

// considerSilence decides after any event which silence still counts.
func (m *Machine) considerSilence(now protocol.Time) {
	r := &m.acceptor
	if !m.wants(now, m.suspected()) && !m.stuck(now) {
		m.silence, m.live[silent], r.tried = silence{}, nil, 0 // the next change gets its full AckTimeout
		return
	}
	if !m.config.NoQuorum { // without majorities, two coordinators make two groups
		m.awaitCoordinator(now)
	}
	if s := &m.silence; !s.excused && !m.mayDecide(m.survivors(m.excluded())) {
		s.excused, r.tried, m.awaiting.since = true, now, now
	}
}

// awaitCoordinator records that a coordinator is silent: it has attempted nothing for
// twice the patience with it, although it was asked to. It does not run, or it has no
// majority. The next rank coordinates instead. The factor of two lets a running
// coordinator leave out a member that it cannot reach before that member leaves out the
// coordinator. A member that did not run itself, according to its clock, begins to wait
// again.
func (m *Machine) awaitCoordinator(now protocol.Time) {
	s := &m.silence
	coordinator := m.lowest(m.excluded())
	paused := now-s.looked > 2*m.config.StatusInterval
	s.looked = now
	m.awaitAnswer(now, paused)
	switch {
	case coordinator == m.config.Self.Rank || !m.asks(now):
		s.asked = 0
	case s.asked == 0 || coordinator != s.coordinator || paused:
		s.asked, s.coordinator = now, coordinator
	case now >= s.asked+2*m.patience():
		i, _ := m.view.index(coordinator)
		m.silenced(i)
		s.asked = 0
		m.reporter.changed() // the accusation does not wait for what is reported already
	}
}

// asks reports whether this member reports a reason to change the view on which the
// coordinator has to act at once.
func (m *Machine) asks(now protocol.Time) bool {
	return m.suspectsMember() || m.stuck(now)
}

// awaitAnswer records that the receiver of this member's suspicions does not answer. Members answer
// reports that are repeated, with their status; to the first one, a ballot or a view is the answer.
// So a member behind a cut knows soon that it cannot reach the coordinator. A member that was
// paused begins to wait again.
func (m *Machine) awaitAnswer(now protocol.Time, paused bool) {
	e := &m.reporter
	if e.due == protocol.Never || !m.suspectsMember() || paused || m.acknowledged() {
		e.heard = now
		return
	}
	if now >= e.heard+m.config.answerTimeout() {
		i, _ := m.view.index(e.to)
		m.record(unheard, i)
	}
}

// answerTimeout is how long a member may take to answer a report. It covers two reports.
func (c *Config) answerTimeout() protocol.Time {
	return max(c.ProbeTimeout, 2*maxBackoff*c.RetryInterval)
}

// accused lists the members that a report to a coordinator names: those that are
// suspected, and the silent ones that would coordinate in its place.
func (m *Machine) accused(to protocol.Rank) []suspect {
	list := m.suspicions.own
	for _, i := range m.live[silent].each() {
		if !m.electorate.has(i) {
			continue
		}
		x := suspect{rank: m.view.Members.At(i).Rank, incarnation: m.view.Members.At(i).Incarnation}
		if at, known := slices.BinarySearchFunc(list, x.rank, compareRank); !known && x.rank < to {
			list = slices.Insert(slices.Clone(list), at, x)
		}
	}
	return list
}
