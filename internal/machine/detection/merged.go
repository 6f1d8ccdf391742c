package detection

import (
	"maps"

	"github.com/pleach-go/pleach/protocol"
)

// Merged has the suspicions of several detectors, which are numbered from 0: a peer is suspected
// while any of them suspects it.
type Merged struct {
	detectors  int
	peers      Peers             // nil: none are watched yet
	suspicions map[source]uint64 // the incarnations
}

// source is a detector that suspects the process of a rank.
type source struct {
	rank     protocol.Rank
	detector int
}

// NewMerged returns what is known before any detector has reported.
func NewMerged(detectors int) *Merged {
	return &Merged{detectors: detectors, suspicions: make(map[source]uint64)}
}

// Watch sets the peers. Suspicions of processes that are not among them are dropped.
func (m *Merged) Watch(peers Peers) {
	m.peers = peers
	maps.DeleteFunc(m.suspicions, func(s source, incarnation uint64) bool { return !m.watched(s.rank, incarnation) })
}

func (m *Merged) watched(rank protocol.Rank, incarnation uint64) bool {
	if m.peers == nil {
		return false
	}
	p, ok := m.peers.Find(rank)
	return ok && p.is(incarnation)
}

// Report records a report of a detector, and returns whether to pass it on: every suspicion of a
// watched process, and the withdrawal if no detector suspects the process any more.
func (m *Merged) Report(detector int, rank protocol.Rank, incarnation uint64, alive bool) bool {
	switch {
	case !m.watched(rank, incarnation):
		return false
	case !alive:
		m.suspicions[source{rank, detector}] = incarnation
		return true
	}
	delete(m.suspicions, source{rank, detector})
	for other := range m.detectors {
		if _, suspects := m.suspicions[source{rank, other}]; suspects {
			return false
		}
	}
	return true
}
