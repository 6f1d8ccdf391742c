package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// suspicions are what is held about who is dead: by this member's own detector,
// and by others who told it. They only ever lead to a proposal; a view decides.
type suspicions struct {
	own      []suspect // in ascending order of ranks
	reported []reported
}

// reported is what another member suspects. It counts for a while only, and is
// told again until then: a withdrawal may get lost, silence does not.
type reported struct {
	by    protocol.Rank
	list  []suspect
	until protocol.Time
}

// Suspect says that a detector holds a start of a member dead. It is reported
// to the coordinator until a view without it is installed, or Trust is called.
func (m *Machine) Suspect(now protocol.Time, r protocol.Rank, incarnation uint64) {
	m.now = now
	if r == m.config.Self.Rank || !m.isMember(r) {
		return
	}
	s := &m.suspicions
	i, known := slices.BinarySearchFunc(s.own, r, compareRank)
	switch {
	case !known:
		s.own = slices.Insert(s.own, i, suspect{r, incarnation})
	case s.own[i].incarnation < incarnation:
		s.own[i].incarnation = incarnation
	default:
		return
	}
	m.reporter.changed()
	m.consider(now)
}

// Trust withdraws a suspicion, and those of earlier incarnations.
func (m *Machine) Trust(now protocol.Time, r protocol.Rank, incarnation uint64) {
	m.now = now
	s := &m.suspicions
	i, known := slices.BinarySearchFunc(s.own, r, compareRank)
	if !known || s.own[i].incarnation > incarnation {
		return
	}
	s.own = slices.Delete(s.own, i, i+1)
	m.reporter.withdrawn = true
	m.reporter.changed()
	m.consider(now)
}

func compareRank(s suspect, r protocol.Rank) int { return int(s.rank - r) }

func (m *Machine) isMember(r protocol.Rank) bool { return m.done == nil && m.view.Has(r) }

// hearReport takes in all that another member suspects.
func (m *Machine) handleReport(now protocol.Time, f *frame) {
	s := &m.suspicions
	s.reported = slices.DeleteFunc(s.reported, func(r reported) bool { return r.by == f.from || r.until <= now })
	if len(f.suspects) > 0 {
		s.reported = append(s.reported, reported{f.from, f.suspects, now + leaseFactor*m.config.RetryInterval})
	}
}

// doomed is who will not be in the next view: who is suspected, and who is silent
// unless that is excused.
func (m *Machine) excluded(now protocol.Time) set {
	excluded := m.suspected(now)
	if s := &m.acceptor.silence; s.members != nil && !s.excused {
		excluded.union(s.members)
	}
	return excluded
}

// suspected is who is suspected, here or by others, and who has been replaced,
// because the same identity knocks as a newer incarnation. A member that is
// suspected here has no say about others: it may be the one that is cut off.
func (m *Machine) suspected(now protocol.Time) set {
	suspected := newSet(len(m.view.Members))
	if len(m.suspicions.own)+len(m.suspicions.reported)+len(m.candidates) == 0 {
		return suspected // as most of the time
	}
	mark := func(list []suspect) {
		for _, s := range list {
			// A newer start is not suspected by what was said of an older one.
			if i, ok := m.view.index(s.rank); ok && i != m.self && s.incarnation >= m.view.Members[i].Incarnation {
				suspected.add(i)
			}
		}
	}
	mark(m.suspicions.own)
	distrusted := slices.Clone(suspected)
	for _, r := range m.suspicions.reported {
		if i, ok := m.view.index(r.by); ok && r.until > now && !distrusted.has(i) {
			mark(r.list)
		}
	}
	for _, c := range m.candidates {
		if i, ok := m.named(c.Identity); ok && i != m.self && m.view.Members[i].Incarnation < c.Incarnation {
			suspected.add(i)
		}
	}
	return suspected
}

// living are the members that are not doomed.
func (m *Machine) survivors(excluded set) set {
	s := newSet(len(m.view.Members))
	for i := range m.view.Members {
		if !excluded.has(i) {
			s.add(i)
		}
	}
	return s
}

// lowest returns the rank of the first member that is not doomed: who is to
// coordinate, as far as this member knows. There is one, since nobody dooms
// itself.
func (m *Machine) lowest(excluded set) protocol.Rank {
	i := 0
	for excluded.has(i) {
		i++
	}
	return m.view.Members[i].Rank
}

// prune forgets what a new view has settled: a suspicion is of whoever had the
// rank before, not of who has it now. Others tell again what still holds.
func (s *suspicions) prune(before, after *View) {
	s.own = slices.DeleteFunc(s.own, func(x suspect) bool {
		was, _ := before.Member(x.rank)
		is, ok := after.Member(x.rank)
		return !ok || is != was
	})
	s.reported = nil
}
