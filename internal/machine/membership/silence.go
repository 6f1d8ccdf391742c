package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// silence is what a member notices itself: another member does not acknowledge an
// attempt, or a coordinator attempts nothing although it is asked to. It is kept
// apart from suspicion, which a detector reports and withdraws. Silence ends with
// its cause: with an answer, with the reason to ask, or with the view.
//
// If the silent members leave no majority, the fault may as well be this member's
// own (local health awareness: Dadgar, Phillips & Currey 2018, Lifeguard). Then no
// member is left out for its silence, and attempts go on with all.
type silence struct {
	members set  // nil: none
	excused bool // they leave no majority, and are asked on

	// How long this member has asked for a change in vain.
	asked       protocol.Time // since when; 0: it does not ask
	coordinator protocol.Rank // the coordinator that it asks
	looked      protocol.Time // when awaitCoordinator last ran
}

// silenced records members that do not answer: they have held up the change for longer
// than this member's patience, although no detector suspects them. Detectors may be
// blind, and such a member must not hold up the others forever: the next attempt leaves
// it out.
func (m *Machine) silenced(members ...int) {
	s := &m.acceptor.silence
	if m.impaired {
		return
	}
	if s.members == nil {
		s.members = newSet(m.view.Members.Len())
	}
	for _, i := range members {
		s.members.add(i)
	}
	s.excused = false
}

// answered ends the silence of a member, and of those it acknowledges for.
func (m *Machine) answered(by protocol.Rank, others set) {
	m.awaitedAnswered(by, others)
	m.acceptor.silence.members.drop(&m.view, by, others)
}

// considerSilence decides after any event which silence still counts.
func (m *Machine) considerSilence(now protocol.Time) {
	r := &m.acceptor
	if !m.wants(now, m.suspected()) && !m.stuck(now) {
		r.silence, r.tried = silence{}, 0 // the next change gets its full AckTimeout
		return
	}
	if !m.config.NoQuorum { // without majorities, two coordinators make two groups
		m.awaitCoordinator(now)
	}
	s := &r.silence
	if !s.excused && !m.isQuorum(m.survivors(m.excluded())) {
		s.excused, r.tried, r.awaiting.since = true, now, now
	}
}

// awaitCoordinator records that a coordinator is silent: it has attempted nothing for
// twice the patience with it, although it was asked to. It does not run, or it has no
// majority. The next rank coordinates instead. The factor of two lets a running
// coordinator leave out a member that it cannot reach before that member leaves out the
// coordinator. A member that did not run itself, as its clock tells, begins to wait
// again.
func (m *Machine) awaitCoordinator(now protocol.Time) {
	s := &m.acceptor.silence
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

// attempts records that a coordinator attempts a change.
func (m *Machine) attempts(r protocol.Rank) {
	m.answered(r, nil)
	m.noteAbstention(r, false)
	m.acceptor.silence.asked = 0
}

// accused lists the members that a report to a coordinator names: those that are
// suspected, and the silent ones that would coordinate in its place.
func (m *Machine) accused(to protocol.Rank) []suspect {
	list := m.suspicions.own
	for _, i := range m.acceptor.silence.members.each() {
		x := suspect{rank: m.view.Members.At(i).Rank, incarnation: m.view.Members.At(i).Incarnation}
		if at, known := slices.BinarySearchFunc(list, x.rank, compareRank); !known && x.rank < to {
			list = slices.Insert(slices.Clone(list), at, x)
		}
	}
	return list
}
