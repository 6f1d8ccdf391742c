package membership

import "github.com/pleach-go/pleach/protocol"

// Stats counts events of one member.
type Stats struct {
	// Changes counts installed views, Ballots the attempts of this member, and
	// Canceled those of them that were abandoned before anything was proposed.
	Changes, Ballots, Canceled uint64
	// Sent counts frames by their kind.
	Sent [Kinds]uint64
	// Took is the duration of the last change at this member: from the first
	// Prepare to the installed view.
	Took protocol.Time
}

// Stats returns the counters of the member.
func (m *Machine) Stats() Stats { return m.stats }
