package stream

import (
	"maps"
	"math"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// View synchrony (Birman & Joseph, "Exploiting Virtual Synchrony in Distributed
// Systems", 1987; Chockler, Keidar & Vitenberg, "Group Communication Specifications",
// 2001): a view cuts every stream. What was sent before the cut belongs to the view
// before, and all members that go from one view to the next together have delivered the
// same in the first.
//
// The flush protocol achieves it. While the next view is agreed upon, the member is
// frozen: it sends nothing as a root and delivers nothing, but keeps and forwards what
// arrives. Then it flushes: it pulls what it lacks before the cut. When the view is
// installed, it delivers that and resumes.
//
// A frozen root has reported how far it has sent, so the cut is there: what follows
// belongs to the next view. A message that is cut in two is sent again as a whole.

// Position is a position in a root's stream.
type Position struct {
	MemberID
	// Next is the first segment behind it.
	Next uint64
	// Holder is a member that has everything before it.
	Holder protocol.Rank
}

// Freeze stops sending as a root and delivering. It returns the position in each stream
// that has advanced since the view began.
func (m *Member) Freeze() []Position {
	if !m.frozen {
		m.frozen = true
		for _, f := range m.flows {
			f.frozenAt = f.next
		}
	}
	return m.positions(func(f *flow) uint64 { return f.next }, func(f *flow) bool { return f.next > f.viewStart })
}

// Frozen reports whether a view change has stopped the streams.
func (m *Member) Frozen() bool { return m.frozen }

// Positions returns where the present view began in each stream of its members: a
// member that joined with it begins there.
func (m *Member) Positions() []Position {
	return m.positions(func(f *flow) uint64 { return f.viewStart }, func(f *flow) bool {
		return f.viewStart > 0 && m.roster.includes(f.root, f.incarnation)
	})
}

// positions returns the position in each flow that counts, in order of root.
func (m *Member) positions(next func(*flow) uint64, counts func(*flow) bool) []Position {
	positions := []Position{}
	for _, f := range m.flowsByRoot() {
		if counts(f) {
			positions = append(positions, Position{MemberID{f.root, f.incarnation}, next(f), m.config.Rank})
		}
	}
	return positions
}

// Thaw continues in the present view.
func (m *Member) Thaw() {
	m.frozen, m.heldBytes, m.cut = false, 0, nil
	for _, f := range m.flowsByRoot() {
		f.cut = 0
		m.deliver(f, f.next)
		m.forwardHeld(f)
		m.acknowledgeProcessed(f)
	}
}

// shareEnd returns the number before which this member passes segments of a flow on.
// What arrives while it is frozen may have been sent in the next view already, by a root
// that has installed it. A member that is not in that view would take it for a message
// of the present one.
func (m *Member) shareEnd(f *flow) uint64 {
	if !m.frozen {
		return math.MaxUint64
	}
	return max(f.frozenAt, f.cut)
}

// shareEndWith returns the number before which this member passes segments of a flow on to
// a peer. One that has left with the present view, and may not know it yet, gets what was
// sent before it only. One that has left earlier gets nothing: where its last view ended is
// forgotten.
func (m *Member) shareEndWith(f *flow, peer protocol.Rank) uint64 {
	if m.roster.has(peer) {
		return m.shareEnd(f)
	}
	if m.leftEarlier(peer) {
		return 0
	}
	return min(m.shareEnd(f), f.viewStart)
}

// leftEarlier reports whether a peer is neither in the present view nor in the one before.
func (m *Member) leftEarlier(peer protocol.Rank) bool {
	if m.roster.has(peer) {
		return false
	}
	if m.former == nil {
		return true
	}
	_, left := m.former.Index(peer)
	return !left
}

// forwardHeld forwards what has arrived while the member was frozen.
func (m *Member) forwardHeld(f *flow) {
	for number := max(f.forwarded, f.viewStart, f.frozenAt); number < f.next; number++ {
		if seg, ok := f.store.get(number); ok {
			m.forward(f, number, &seg)
		}
	}
	f.frozenAt = f.next
}

// Flush pulls everything before a cut at once: the other members wait for it.
func (m *Member) Flush(now protocol.Time, cut []Position) {
	m.cut = cut
	for _, end := range cut {
		f := m.flowOf(end.MemberID)
		if f == nil {
			continue
		}
		f.cut = end.Next
		if f.next >= f.cut {
			continue
		}
		f.wanted = max(f.wanted, end.Next)
		f.pull = pull{due: now, nextSeen: f.next, sources: append(f.pull.sources[:0], end.Holder)}
		m.schedule(f, now)
	}
}

// Flushed reports whether everything before the last cut is here, or was given up.
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

// Install begins a view, after delivering everything before the last cut in the view
// before. Streams of roots that are not in it end with the cut. The member keeps the
// list of members.
func (m *Member) Install(now protocol.Time, number uint64, slots protocol.Rank, members Members) error {
	for _, end := range m.cut {
		if f := m.flowOf(end.MemberID); f != nil {
			m.deliver(f, end.Next)
			f.viewStart = max(f.viewStart, end.Next)
		}
	}
	m.former = nil
	if number == m.view+1 {
		m.former = m.roster.members
	}
	m.frozen, m.heldBytes, m.cut, m.view = false, 0, nil, number
	if err := m.setRoster(slots, members); err != nil {
		return err
	}
	stays := m.roster.includes(m.config.Rank, m.config.Incarnation)
	if stays && (m.config.Replicate || m.config.Begins) {
		m.inbox.push(&m.inbox.main, Message{View: number, Begins: true})
	}
	m.endFlows()
	if !stays {
		m.frozen = true // what follows the cut is for members of the view only
		for _, f := range m.flows {
			f.correction.stop()
		}
		return nil
	}
	m.dropCutMessage()
	for _, f := range m.flowsByRoot() {
		if err := m.route(f); err != nil {
			return err
		}
		f.cut = 0
		m.deliver(f, f.next)
		m.forwardHeld(f)
		m.restartCorrection(now, f)
		m.restartAcks(now, f)
		m.restartProcessing(now, f)
		m.restartCredits(now, f)
	}
	return nil
}

// setRoster sets the members, and plans correction among them. It keeps the list.
func (m *Member) setRoster(slots protocol.Rank, members Members) error {
	m.roster = roster{slots: slots, members: members}
	m.roster.self, _ = m.roster.index(m.config.Rank)
	absent := func(r protocol.Rank) bool { return !m.roster.has(r) }
	maps.DeleteFunc(m.down, func(r protocol.Rank, _ bool) bool { return absent(r) })
	maps.DeleteFunc(m.stalled, func(r protocol.Rank, _ bool) bool { return absent(r) })
	maps.DeleteFunc(m.backlogs, func(r protocol.Rank, _ *backlog) bool { return absent(r) })
	maps.DeleteFunc(m.missed, func(r protocol.Rank, _ []*flow) bool { return absent(r) })
	return m.planCorrection()
}

// endFlows ends the streams of roots that are not in the view. They are kept until the
// next view for members that have yet to pull something before the cut.
func (m *Member) endFlows() {
	m.endedFlows = m.endedFlows[:0]
	for _, f := range m.flowsByRoot() {
		if !m.roster.includes(f.root, f.incarnation) {
			f.ended = true
			f.correction.stop()
			m.endedFlows = append(m.endedFlows, f)
			delete(m.flows, f.root)
		}
	}
	m.scheduled = slices.DeleteFunc(m.scheduled, func(f *flow) bool { return f.ended })
	m.processing = slices.DeleteFunc(m.processing, func(f *flow) bool { return f.ended })
	m.lastFlow = m.own.flow
}

// restartCorrection corrects what a flow has beyond the cut, among the members of the
// new view.
func (m *Member) restartCorrection(now protocol.Time, f *flow) {
	c := &f.correction
	c.heardTo, c.toldTo = 0, 0 // the neighbors may be others
	if f.next == f.viewStart && !c.running {
		return
	}
	c.stop()
	c.upTo = 0
	m.scheduleCorrection(now, f)
	m.armTailProbe(now, f)
}
