package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Leave asks for a view without this member. The member participates until such a
// view is installed; then its state is Left. The last voter cannot leave before all observers
// have, or one has become a voter: its vote would be lost, and the group could never decide again.
func (m *Machine) Leave(now protocol.Time) {
	m.now = now
	m.leaving = true
	m.reporter.changed()
}

// handleLeave records that a member wants to leave. A leave cannot be withdrawn.
func (m *Machine) handleLeave(now protocol.Time, r protocol.Rank, incarnation uint64) {
	i, _ := m.view.index(r)
	if s := (suspect{rank: r, incarnation: incarnation}); !m.electorate.last(i) && !slices.Contains(m.leavers, s) {
		m.leavers = append(m.leavers, s)
		m.window.note(now)
	}
}
