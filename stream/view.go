package stream

import (
	"maps"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// A view cuts every stream: what was sent before the cut belongs to the view
// before, and all who go from one to the other together have delivered the same
// of it. While the next view is agreed upon, the member is frozen: it sends
// nothing as a root and delivers nothing more, but keeps and passes on what
// arrives. Then it gets what it lacks up to the cut, delivers that, and goes on.
//
// A root that is frozen has told how far it has sent, so the cut through its
// stream is just there: what follows belongs to the next view. A message that
// is cut in two is sent again as a whole.

// Mark is a place in a root's stream.
type Mark struct {
	Place
	// Next is the first segment behind it.
	Next uint64
	// Holder is somebody who has everything before.
	Holder protocol.Rank
}

// Freeze stops sending as a root and delivering. It returns how far each stream
// has got that has moved since the view began.
func (m *Member) Freeze() []Mark {
	m.frozen = true
	return m.marks(func(f *flow) uint64 { return f.next }, func(f *flow) bool { return f.next > f.base })
}

// Marks returns where the present view has begun in each stream: where somebody
// who has joined with it begins.
func (m *Member) Marks() []Mark {
	return m.marks(func(f *flow) uint64 { return f.base }, func(f *flow) bool { return f.base > 0 })
}

// marks returns a mark of each flow that counts, in order of root.
func (m *Member) marks(next func(*flow) uint64, counts func(*flow) bool) []Mark {
	marks := []Mark{}
	for _, f := range m.flows {
		if counts(f) {
			marks = append(marks, Mark{Place{f.root, f.incarnation}, next(f), m.config.Rank})
		}
	}
	slices.SortFunc(marks, func(a, b Mark) int { return int(a.Rank - b.Rank) })
	return marks
}

// Thaw goes on in the present view.
func (m *Member) Thaw() {
	m.frozen, m.held, m.cut = false, 0, nil
	for _, f := range m.flows {
		f.cut = 0
		m.deliver(f, f.next)
	}
}

// Flush asks for everything up to a cut, at once: others wait for it.
func (m *Member) Flush(now protocol.Time, cut []Mark) {
	m.cut = cut
	for _, mark := range cut {
		f := m.flowOf(mark.Place)
		if f == nil {
			continue
		}
		if f.cut = mark.Next; f.next >= f.cut {
			continue
		}
		f.wanted = max(f.wanted, mark.Next)
		f.asking = asking{due: now, seen: f.next, sources: append(f.asking.sources[:0], mark.Holder)}
		m.schedule(f, now)
	}
}

// Flushed reports whether everything up to the last cut is here.
func (m *Member) Flushed() bool {
	for _, mark := range m.cut {
		if f := m.flowOf(mark.Place); f != nil && f.next < mark.Next {
			return false
		}
	}
	return true
}

// flowOf returns the flow of a member of the present view, or nil.
func (m *Member) flowOf(p Place) *flow {
	return m.follow(&frame{kind: offer, root: p.Rank, incarnation: p.Incarnation})
}

// Install begins a view, with everything up to the last cut delivered in the one
// before. Streams of roots that are not in it end with the cut.
func (m *Member) Install(now protocol.Time, number uint64, slots protocol.Rank, members []Place) error {
	for _, mark := range m.cut {
		if f := m.flowOf(mark.Place); f != nil {
			m.deliver(f, mark.Next)
			f.base = max(f.base, mark.Next)
		}
	}
	m.frozen, m.held, m.cut, m.view = false, 0, nil, number
	if err := m.lineUp(slots, members); err != nil {
		return err
	}
	m.endFlows()
	m.restart()
	for _, f := range m.flows {
		if err := m.route(f); err != nil {
			return err
		}
		f.cut = 0
		m.deliver(f, f.next)
		m.beginAnew(now, f)
		m.reAcknowledge(now, f)
	}
	return nil
}

// lineUp takes in who is there, and lays correction over them.
func (m *Member) lineUp(slots protocol.Rank, members []Place) error {
	m.lineup = lineup{slots: slots, members: slices.Clone(members)}
	m.lineup.self, _ = m.lineup.place(m.config.Rank)
	gone := func(r protocol.Rank) bool { return !m.lineup.has(r) }
	maps.DeleteFunc(m.down, func(r protocol.Rank, _ bool) bool { return gone(r) })
	maps.DeleteFunc(m.backlogs, func(r protocol.Rank, _ *backlog) bool { return gone(r) })
	return m.planCorrection()
}

// endFlows ends the streams of those who are gone. They are kept until the next
// view for those who have yet to get something up to the cut.
func (m *Member) endFlows() {
	m.former = m.former[:0]
	for root, f := range m.flows {
		if !m.lineup.admits(root, f.incarnation) {
			f.over = true
			m.former = append(m.former, f)
			delete(m.flows, root)
		}
	}
	m.timed = slices.DeleteFunc(m.timed, func(f *flow) bool { return f.over })
	m.recent = m.own.flow
}

// beginAnew has what a flow has got beyond the cut corrected among those who are
// there now.
func (m *Member) beginAnew(now protocol.Time, f *flow) {
	c := &f.correction
	if f.next == f.base && !c.running {
		return
	}
	c.running, c.due, c.upTo = false, protocol.Never, 0
	m.correct(now, f)
	m.remind(now, f)
}
