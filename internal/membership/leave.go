package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Leave says that this member wants to leave. It goes on taking part until a
// view without it is decided; its state is Left then.
func (m *Machine) Leave(now protocol.Time) {
	m.now = now
	if m.done != nil || m.leaving {
		return
	}
	m.leaving = true
	m.reporter.changed()
	m.consider(now)
}

// hearLeave takes in that a member wants to leave. It cannot be taken back.
func (m *Machine) handleLeave(now protocol.Time, r protocol.Rank, incarnation uint64) {
	if s := (suspect{r, incarnation}); !slices.Contains(m.leavers, s) {
		m.leavers = append(m.leavers, s)
		m.window.note(now)
	}
}
