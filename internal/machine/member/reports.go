package member

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Report is what a detector has found out about a member.
type Report struct {
	Rank        protocol.Rank
	Incarnation uint64
	// Alive withdraws a suspicion. Otherwise the report is one, and Silent says that the
	// member has not answered, which may be this process's own fault.
	Alive, Silent bool
	// Cause is for people.
	Cause error
}

// reports is what a member knows about its own health, and the reports that it doubts
// for that reason.
type reports struct {
	impaired bool
	held     []Report // at most one about each rank, the oldest first
}

// Report takes in the report of a detector.
func (m *Machine) Report(now protocol.Time, r Report) {
	held := &m.reports.held
	*held = slices.DeleteFunc(*held, func(h Report) bool { return h.Rank == r.Rank })
	if m.reports.impaired && r.Silent && !r.Alive {
		*held = append(*held, r) // the silence may be this process's own fault
		return
	}
	m.takeReport(now, r)
}

// takeReport passes a report to the membership protocol, if it is about a member.
func (m *Machine) takeReport(now protocol.Time, r Report) {
	view := m.views.View()
	about, ok := view.Member(r.Rank)
	if !ok || about.Nonce != 0 && about.Incarnation != r.Incarnation {
		return // the process is no longer in the view
	}
	m.enter(now)
	if m.config.OnReport != nil {
		m.config.OnReport(r, about)
	}
	if r.Alive {
		m.views.Trust(now, about.Rank, about.Incarnation)
		return
	}
	m.views.Suspect(now, about.Rank, about.Incarnation)
}

// SetImpaired says whether this process lacks the means to reach others, as file
// descriptors. While it does, it takes no other member for silent (local health
// awareness: Dadgar, Phillips & Currey 2018, Lifeguard).
func (m *Machine) SetImpaired(now protocol.Time, impaired bool) {
	m.reports.impaired = impaired
	if m.views == nil {
		return
	}
	m.acts = true
	m.views.SetImpaired(impaired)
	if impaired {
		return
	}
	held := m.reports.held
	m.reports.held = nil
	for _, r := range held {
		m.takeReport(now, r)
	}
}
