package membership

import "github.com/pleach-go/pleach/protocol"

// Stats counts what a member has done.
type Stats struct {
	// Changes counts views installed; Ballots attempts of this member, and
	// Voided those of them that were given up before anything was proposed.
	Changes, Ballots, Canceled uint64
	// Sent counts frames by their kind.
	Sent [Kinds]uint64
	// Took is the last change's duration here: from the first this member heard
	// of it to its view.
	Took protocol.Time
}

// Stats returns what the member has counted.
func (m *Machine) Stats() Stats { return m.stats }
