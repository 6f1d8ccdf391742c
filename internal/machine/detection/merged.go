package detection

import (
	"maps"

	"github.com/pleach-go/pleach/protocol"
)

// Merged has the opinions of several detectors, which have numbers: a peer is suspected while
// any of them suspects it.
type Merged struct {
	peers      Peers                            // nil: none are watched yet
	suspicions map[protocol.Rank]map[int]uint64 // the incarnation that each detector suspects
}

// NewMerged returns what is known before any detector has reported.
func NewMerged() *Merged { return &Merged{suspicions: make(map[protocol.Rank]map[int]uint64)} }

// Watch sets the peers. Suspicions of processes that are not among them are dropped.
func (m *Merged) Watch(peers Peers) {
	m.peers = peers
	for rank, by := range m.suspicions {
		p, ok := peers.Find(rank)
		maps.DeleteFunc(by, func(_ int, incarnation uint64) bool { return !ok || !p.is(incarnation) })
		if len(by) == 0 {
			delete(m.suspicions, rank)
		}
	}
}

// Report records a report of a detector, and returns whether to pass it on: every suspicion of a
// watched process, and the withdrawal if no detector suspects the process any more.
func (m *Merged) Report(detector int, rank protocol.Rank, incarnation uint64, alive bool) bool {
	if m.peers == nil {
		return false
	}
	if p, ok := m.peers.Find(rank); !ok || !p.is(incarnation) {
		return false
	}
	by := m.suspicions[rank]
	if alive {
		delete(by, detector)
		if len(by) == 0 {
			delete(m.suspicions, rank)
		}
		return len(by) == 0
	}
	if by == nil {
		by = make(map[int]uint64)
		m.suspicions[rank] = by
	}
	by[detector] = incarnation
	return true
}
