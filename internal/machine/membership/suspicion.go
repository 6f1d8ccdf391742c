package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// suspicions are the suspicions of this member's own detector, and those that other
// members have reported. A suspicion only leads to a proposal; a view decides.
type suspicions struct {
	own      []suspect // in ascending order of ranks
	reported []reported

	// marked is what both lists come to, until they change. After many deaths a
	// coordinator has many reports, and asks for this after every event.
	marked set // nil: to be computed
}

// reported is what another member suspects. It is a lease: it expires unless the
// member repeats it, because a withdrawal may get lost.
type reported struct {
	report
	via   protocol.Rank // the sender: the member itself, or a relay
	until protocol.Time
}

// Suspect says that a detector suspects an incarnation of a member. The machine
// reports it to the coordinator until a view without that incarnation is installed,
// or Trust is called.
func (m *Machine) Suspect(now protocol.Time, r protocol.Rank, incarnation uint64) {
	m.now = now
	if r == m.config.Self.Rank || !m.isMember(r) {
		return
	}
	s := &m.suspicions
	i, known := slices.BinarySearchFunc(s.own, r, compareRank)
	switch {
	case !known:
		s.own = slices.Insert(s.own, i, suspect{rank: r, incarnation: incarnation})
	case s.own[i].incarnation < incarnation:
		s.own[i] = suspect{rank: r, incarnation: incarnation}
	default:
		return
	}
	s.marked = nil
	m.reporter.changed()
}

// Trust withdraws a suspicion, and those of earlier incarnations, but no eviction.
func (m *Machine) Trust(now protocol.Time, r protocol.Rank, incarnation uint64) {
	m.now = now
	s := &m.suspicions
	i, known := slices.BinarySearchFunc(s.own, r, compareRank)
	if !known || s.own[i].incarnation > incarnation || s.own[i].cause.evicts() {
		return
	}
	s.own, s.marked = slices.Delete(s.own, i, i+1), nil
	m.reporter.withdrawn = true
	m.reporter.changed()
}

func compareRank(s suspect, r protocol.Rank) int { return int(s.rank - r) }

func (m *Machine) isMember(r protocol.Rank) bool { return m.done == nil && m.view.Has(r) }

// handleReport replaces what a member has reported, and passes news on. It reports
// whether the member repeats its report: it has got no answer yet.
func (m *Machine) handleReport(now protocol.Time, f *frame) (repeated bool) {
	s := &m.suspicions
	before := m.markedSuspects()
	var last []report
	s.reported = slices.DeleteFunc(s.reported, func(r reported) bool {
		if r.via == f.from {
			last = append(last, r.report)
		}
		return r.via == f.from
	})
	for _, r := range f.reports {
		s.reported = append(s.reported, reported{r, f.from, now + m.lease()})
	}
	s.marked = nil
	if after := m.markedSuspects(); !slices.Equal(before, after) {
		m.relayNews(now, !after.covers(before))
	}
	return len(last) > 0 && slices.EqualFunc(last, f.reports, func(a, b report) bool {
		return a.by == b.by && slices.Equal(a.suspects, b.suspects)
	})
}

// expireReports forgets the reports that were not repeated.
func (m *Machine) expireReports(now protocol.Time) {
	s := &m.suspicions
	s.reported = slices.DeleteFunc(s.reported, func(r reported) bool {
		if r.until <= now {
			s.marked = nil
		}
		return r.until <= now
	})
}

// suspected returns the members that this member or another one suspects, and those
// whose identity a new process has because they are gone. Reports of a member that is
// suspected here do not count: it may be the one that is cut off. It is nil if there
// are none: this is asked after every event.
func (m *Machine) suspected() set {
	if max(len(m.suspicions.own), len(m.suspicions.reported), len(m.candidates), len(m.pending),
		len(m.acceptor.forced)) == 0 {
		return nil
	}
	suspected := slices.Clone(m.markedSuspects())
	for i := range m.candidates {
		m.markGone(suspected, &m.candidates[i])
	}
	for i := range m.pending {
		m.markGone(suspected, &m.pending[i].candidate)
	}
	return suspected
}

// markedSuspects returns what the lists of suspicions come to.
func (m *Machine) markedSuspects() set {
	if m.suspicions.marked == nil {
		m.markSuspects()
	}
	return m.suspicions.marked
}

// markSuspects computes what the lists of suspicions come to, and the members that a
// forced view leaves out.
func (m *Machine) markSuspects() {
	s := &m.suspicions
	s.marked = newSet(m.view.Members.Len())
	if m.acceptor.forced != nil {
		s.marked = m.acceptor.forced.complement(m.view.Members.Len())
	}
	mark := func(list []suspect) {
		for _, x := range list {
			if i, ok := m.suspectIndex(x); ok && i != m.self {
				s.marked.add(i)
			}
		}
	}
	mark(s.own)
	distrusted := slices.Clone(s.marked)
	for _, r := range s.reported {
		by, _ := m.view.index(r.by)
		via, _ := m.view.index(r.via)
		if !distrusted.has(by) && !distrusted.has(via) {
			mark(r.suspects)
		}
	}
}

// prune forgets the suspicions that a new view resolves: a suspicion is about the
// member that had the rank before, not the one that has it now. Other members repeat
// what still holds.
func (s *suspicions) prune(before, after *View) {
	s.own = slices.DeleteFunc(s.own, func(x suspect) bool {
		was, _ := before.Member(x.rank)
		return !after.Holds(x.rank, was.Incarnation)
	})
	s.reported, s.marked = nil, nil
}
