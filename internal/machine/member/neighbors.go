package member

import (
	"slices"

	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// neighbors are the members that this one connects to in advance.
type neighbors struct {
	next         membership.Member   // on the ring
	coordinators []membership.Member // in a small group, the coordinator and its successor
}

// connectNeighbors opens connections in advance, and exchanges heartbeats over them.
func (m *Machine) connectNeighbors(v *membership.View) {
	self, ok := v.Members.Index(m.config.Self.Rank)
	if ok {
		m.preconnect(v, self)
		m.heart.Watch(m.now, ringNeighbors(v, self))
	}
}

// preconnect opens connections to the next member on the ring and, in a small group,
// to the coordinator and its successor, if those have changed. Its neighbor then sees
// at once that a member has died, even if no message would be sent to it, and a view
// change need not wait for connections.
func (m *Machine) preconnect(v *membership.View, self int) {
	n := &m.neighbors
	if next := *v.Members.At((self + 1) % v.Members.Len()); next != n.next {
		n.next = next
		m.views.Up(m.now, next.Rank)
	}
	var leaders []membership.Member
	if v.Members.Len() <= membership.DefaultFlatThreshold {
		for _, peer := range v.Members.All() {
			if !peer.Observer && len(leaders) < 2 {
				leaders = append(leaders, *peer)
			}
		}
	}
	for _, leader := range leaders {
		if leader != n.next && !slices.Contains(n.coordinators, leader) {
			m.views.Up(m.now, leader.Rank) // nothing happens if it is this member
		}
	}
	n.coordinators = leaders
}

// ringNeighbors returns the members to exchange heartbeats with: those before and after a
// member on the ring, however large the group is. All members of a view after the first have
// started: they have agreed on it, or have asked to join. So have those of a first view that
// was agreed on, whose members have nonces.
func ringNeighbors(v *membership.View, self int) (neighbors []heartbeat.Neighbor) {
	for _, i := range []int{self + 1, self - 1 + v.Members.Len()} {
		peer := v.Members.At(i % v.Members.Len())
		n := heartbeat.Neighbor{Rank: peer.Rank, Incarnation: peer.Incarnation, Started: v.Number > 1 || peer.Nonce != 0}
		if i%v.Members.Len() != self && !slices.Contains(neighbors, n) {
			neighbors = append(neighbors, n)
		}
	}
	return neighbors
}

// noteQuiet tells the membership protocol whether a neighbor has missed heartbeats, if that
// has changed.
func (m *Machine) noteQuiet(now protocol.Time) (changed bool) {
	if m.heart.Quiet() == m.quiet {
		return false
	}
	m.quiet = !m.quiet
	m.enter(now)
	m.views.SetQuiet(now, m.quiet)
	return true
}

// handleSilence takes a finding of the heartbeats.
func (m *Machine) handleSilence(neighbor protocol.Rank, silent bool) {
	if m.config.OnSilence != nil {
		m.config.OnSilence(neighbor, silent)
	}
}
