package member

import (
	"slices"

	"github.com/pleach-go/pleach/internal/heartbeat"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

// neighbors are the members that this one connects to in advance.
type neighbors struct {
	next         membership.Member   // on the ring
	coordinators []membership.Member // in a small group, the coordinator and its successor
}

// connectNeighbors opens connections in advance, and exchanges heartbeats over them.
func (m *Machine) connectNeighbors(v *membership.View) {
	self, ok := slices.BinarySearchFunc(v.Members, m.config.Self.Rank, CompareRank)
	if ok {
		m.preconnect(v, self)
		m.watchNeighbors(v, self)
	}
}

// preconnect opens connections to the next member on the ring and, in a small group,
// to the coordinator and its successor, if those have changed. Its neighbor then sees
// at once that a member has died, even if no message would be sent to it, and a view
// change need not wait for connections.
func (m *Machine) preconnect(v *membership.View, self int) {
	n := &m.neighbors
	if next := v.Members[(self+1)%len(v.Members)]; next != n.next {
		n.next = next
		m.views.Up(m.now, next.Rank)
	}
	var leaders []membership.Member
	if len(v.Members) <= membership.DefaultFlatThreshold {
		leaders = v.Members[:min(2, len(v.Members))]
	}
	for _, leader := range leaders {
		if leader != n.next && !slices.Contains(n.coordinators, leader) {
			m.views.Up(m.now, leader.Rank) // nothing happens if it is this member
		}
	}
	n.coordinators = leaders
}

// watchNeighbors exchanges heartbeats with the members before and after this one on the
// ring, however large the group is. All members of a view after the first have started:
// they have agreed on it, or have asked to join.
func (m *Machine) watchNeighbors(v *membership.View, self int) {
	var neighbors []heartbeat.Neighbor
	for _, i := range []int{self + 1, self - 1 + len(v.Members)} {
		peer := v.Members[i%len(v.Members)]
		n := heartbeat.Neighbor{Rank: peer.Rank, Incarnation: peer.Incarnation, Started: v.Number > 1}
		if peer.Rank != m.config.Self.Rank && !slices.Contains(neighbors, n) {
			neighbors = append(neighbors, n)
		}
	}
	m.heart.Watch(m.now, neighbors)
}

// handleSilence takes a finding of the heartbeats.
func (m *Machine) handleSilence(neighbor protocol.Rank, silent bool) {
	if m.config.OnSilence != nil {
		m.config.OnSilence(neighbor, silent)
	}
}

// CompareRank compares the rank of a member with another, to search members by rank.
func CompareRank(m membership.Member, r protocol.Rank) int { return int(m.Rank - r) }
