package fault

import (
	"maps"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// outage is a connection broken by a reset. First both sides get Down; only then
// either gets Up. Otherwise one side could send a frame over the new connection that
// the other side drops as one of the old.
type outage struct {
	breaking int // sides whose Down has not returned yet
	members  []*member
}

// peersOf returns the ranks that a rank may be connected to, in order: its sides,
// and the members that have a side for it.
func (n *Network) peersOf(rank protocol.Rank) []protocol.Rank {
	peers := make(map[protocol.Rank]bool)
	for _, m := range n.members {
		if _, ok := m.sides[rank]; ok {
			peers[m.rank] = true
		}
	}
	if m := n.members[rank]; m != nil {
		for peer := range m.sides {
			peers[peer] = true
		}
	}
	return slices.Sorted(maps.Keys(peers))
}

// reset breaks the connection between two ranks, on each side that is a connected
// member.
func (n *Network) reset(a, b protocol.Rank) {
	o := new(outage)
	start := func(rank, peer protocol.Rank) {
		m := n.members[rank]
		if m == nil || m.ended {
			return
		}
		s := m.side(peer)
		if !s.up || s.outage != nil {
			return
		}
		s.outage = o
		o.breaking++
		o.members = append(o.members, m)
		m.running.Go(func() { m.replay(peer, s, o) })
	}
	start(a, b)
	start(b, a)
	if o.breaking == 0 {
		return
	}
	n.stats.Resets++
	n.link(direction{a, b}).clear()
	n.link(direction{b, a}).clear()
	for _, m := range o.members {
		m.changed.Broadcast() // What waits in the filter is lost.
	}
}

// replay calls Down and Up on one side of an outage.
func (m *member) replay(peer protocol.Rank, s *side, o *outage) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if m.await(s) {
		m.call(s, func() { m.handler.Down(peer, ErrReset) })
	}
	o.breaking--
	for _, other := range o.members {
		other.changed.Broadcast()
	}
	for o.breaking > 0 && !m.ended {
		m.changed.Wait()
	}
	// Either side may be gone by now, or the inner transport's connection.
	if m.await(s) && s.up {
		if other := m.net.members[peer]; other != nil && other.ended {
			s.up = false
		} else {
			incarnation := s.incarnation
			m.call(s, func() { m.handler.Up(peer, incarnation) })
		}
	}
	s.outage = nil
	m.changed.Broadcast()
}

// await waits until no other call about a peer is in progress, and reports whether the
// member still runs.
func (m *member) await(s *side) bool {
	for !m.ended && (m.net.frozen[m.rank] || s.busy) {
		m.changed.Wait()
	}
	return !m.ended
}
