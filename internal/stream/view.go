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

// Position is a place in a root's stream.
type Position struct {
	MemberID
	// Next is the first segment behind it.
	Next uint64
	// Holder is somebody who has everything before.
	Holder protocol.Rank
}

// Freeze stops sending as a root and delivering. It returns how far each stream
// has got that has moved since the view began.
func (m *Member) Freeze() []Position {
	m.frozen = true
	return m.positions(func(f *flow) uint64 { return f.next }, func(f *flow) bool { return f.next > f.viewStart })
}

// Positions returns where the present view has begun in each stream: where somebody
// who has joined with it begins.
func (m *Member) Positions() []Position {
	return m.positions(func(f *flow) uint64 { return f.viewStart }, func(f *flow) bool { return f.viewStart > 0 })
}

// marks returns a mark of each flow that counts, in order of root.
func (m *Member) positions(next func(*flow) uint64, counts func(*flow) bool) []Position {
	positions := []Position{}
	for _, f := range m.flows {
		if counts(f) {
			positions = append(positions, Position{MemberID{f.root, f.incarnation}, next(f), m.config.Rank})
		}
	}
	slices.SortFunc(positions, func(a, b Position) int { return int(a.Rank - b.Rank) })
	return positions
}

// Thaw goes on in the present view.
func (m *Member) Thaw() {
	m.frozen, m.heldBytes, m.cut = false, 0, nil
	for _, f := range m.flows {
		f.cut = 0
		m.deliver(f, f.next)
	}
}

// Flush asks for everything up to a cut, at once: others wait for it.
func (m *Member) Flush(now protocol.Time, cut []Position) {
	m.cut = cut
	for _, end := range cut {
		f := m.flowOf(end.MemberID)
		if f == nil {
			continue
		}
		if f.cut = end.Next; f.next >= f.cut {
			continue
		}
		f.wanted = max(f.wanted, end.Next)
		f.pull = pull{due: now, nextSeen: f.next, sources: append(f.pull.sources[:0], end.Holder)}
		m.schedule(f, now)
	}
}

// Flushed reports whether everything up to the last cut is here.
func (m *Member) Flushed() bool {
	for _, end := range m.cut {
		if f := m.flowOf(end.MemberID); f != nil && f.next < end.Next {
			return false
		}
	}
	return true
}

// flowOf returns the flow of a member of the present view, or nil.
func (m *Member) flowOf(p MemberID) *flow {
	return m.flowOfFrame(&frame{kind: offer, root: p.Rank, incarnation: p.Incarnation})
}

// Install begins a view, with everything up to the last cut delivered in the one
// before. Streams of roots that are not in it end with the cut.
func (m *Member) Install(now protocol.Time, number uint64, slots protocol.Rank, members []MemberID) error {
	for _, end := range m.cut {
		if f := m.flowOf(end.MemberID); f != nil {
			m.deliver(f, end.Next)
			f.viewStart = max(f.viewStart, end.Next)
		}
	}
	m.frozen, m.heldBytes, m.cut, m.view = false, 0, nil, number
	if err := m.setRoster(slots, members); err != nil {
		return err
	}
	m.endFlows()
	m.dropCutMessage()
	for _, f := range m.flows {
		if err := m.route(f); err != nil {
			return err
		}
		f.cut = 0
		m.deliver(f, f.next)
		m.restartCorrection(now, f)
		m.restartAcks(now, f)
	}
	return nil
}

// lineUp takes in who is there, and lays correction over them.
func (m *Member) setRoster(slots protocol.Rank, members []MemberID) error {
	m.roster = roster{slots: slots, members: slices.Clone(members)}
	m.roster.self, _ = m.roster.index(m.config.Rank)
	absent := func(r protocol.Rank) bool { return !m.roster.has(r) }
	maps.DeleteFunc(m.down, func(r protocol.Rank, _ bool) bool { return absent(r) })
	maps.DeleteFunc(m.backlogs, func(r protocol.Rank, _ *backlog) bool { return absent(r) })
	return m.planCorrection()
}

// endFlows ends the streams of those who are gone. They are kept until the next
// view for those who have yet to get something up to the cut.
func (m *Member) endFlows() {
	m.endedFlows = m.endedFlows[:0]
	for root, f := range m.flows {
		if !m.roster.includes(root, f.incarnation) {
			f.ended = true
			m.endedFlows = append(m.endedFlows, f)
			delete(m.flows, root)
		}
	}
	m.scheduled = slices.DeleteFunc(m.scheduled, func(f *flow) bool { return f.ended })
	m.lastFlow = m.own.flow
}

// beginAnew has what a flow has got beyond the cut corrected among those who are
// there now.
func (m *Member) restartCorrection(now protocol.Time, f *flow) {
	c := &f.correction
	if f.next == f.viewStart && !c.running {
		return
	}
	c.running, c.due, c.upTo = false, protocol.Never, 0
	m.scheduleCorrection(now, f)
	m.armTailProbe(now, f)
}
