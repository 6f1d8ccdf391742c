package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// A peer whose queue was full has missed what did not fit. It is offered those streams,
// and no others, when there is room again: the offers of all streams may be more than
// its queue holds. They would fill it again, and so on without end.

// noteMissed records that a peer has missed something of a stream.
func (m *Member) noteMissed(peer protocol.Rank, f *flow) {
	if flows := m.missed[peer]; !slices.Contains(flows, f) {
		m.missed[peer] = append(flows, f)
	}
}

// offerMissed offers a peer the streams of which it has missed something.
func (m *Member) offerMissed(now protocol.Time, peer protocol.Rank) {
	flows := m.missed[peer]
	delete(m.missed, peer)
	for _, f := range flows {
		if m.flows[f.root] == f && m.roster.has(peer) {
			m.offer(now, peer, f, undirected)
		}
	}
}
