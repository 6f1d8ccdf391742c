package member

import (
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
)

// The streams are the log that view changes cut. The methods of [membership.Log] are for
// the membership protocol, not for drivers.

// Freeze implements [membership.Log].
func (m *Machine) Freeze() []membership.Position { return membershipPositions(m.stream.Freeze()) }

// Thaw implements [membership.Log].
func (m *Machine) Thaw() {
	m.flushing = false
	m.stream.Thaw()
}

// Flush implements [membership.Log].
func (m *Machine) Flush(cut []membership.Position) {
	m.flushing = true
	m.stream.Flush(m.now, streamPositions(cut))
}

// Flushed implements [membership.Log].
func (m *Machine) Flushed() bool { return m.stream.Flushed() }

// Install implements [membership.Log].
func (m *Machine) Install(v *membership.View) {
	m.flushing = false
	// It fails only for a shape of tree that could not be laid at the start.
	_ = m.stream.Install(m.now, v.Number, v.Slots, members{v.Members})
	m.direct.Install(m.now, v)
	if m.config.Unicast != nil {
		m.config.Unicast.Install(m.now, v)
	}
	if m.config.OnView != nil {
		m.config.OnView(v)
	}
	m.connectNeighbors(v)
}

// flushStep tells the views when the streams have what a cut needs, which a frame, a view or
// time alone may have brought.
func (m *Machine) flushStep() (flushed bool) {
	if !m.flushing || !m.stream.Flushed() {
		return false
	}
	m.flushing = false
	m.viewsChanged()
	m.views.LogFlushed(m.now)
	return true
}

// Positions returns where the present view began in each stream: a member that joined
// with it begins there.
func (m *Machine) Positions() []membership.Position {
	return membershipPositions(m.stream.Positions())
}

// members shows the streams the members of a view. It copies none.
type members struct{ membership.Members }

// At implements [stream.Members].
func (m members) At(i int) stream.MemberID {
	of := m.Members.At(i)
	return stream.MemberID{Rank: of.Rank, Incarnation: of.Incarnation}
}

func membershipPositions(from []stream.Position) []membership.Position {
	positions := make([]membership.Position, len(from))
	for i, p := range from {
		positions[i] = membership.Position{Root: p.Rank, Incarnation: p.Incarnation, Next: p.Next, Holder: p.Holder}
	}
	return positions
}

func streamPositions(from []membership.Position) []stream.Position {
	positions := make([]stream.Position, len(from))
	for i, p := range from {
		positions[i] = stream.Position{
			MemberID: stream.MemberID{Rank: p.Root, Incarnation: p.Incarnation}, Next: p.Next,
			Holder: p.Holder,
		}
	}
	return positions
}
