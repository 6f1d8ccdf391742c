package stream

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Routing: the tree of a flow's root spans all ranks. A hole's children take its
// position among those of its parent. So do the children of a member that is down or
// stalled, as far as this member knows, until it is back: the tree bypasses it.

// route finds the parent and the children of this member in the tree of a flow's root.
func (m *Member) route(f *flow) error {
	f.foster = foster{due: protocol.Never, parent: protocol.NoRank}
	return m.layTree(f)
}

// reroute recomputes all trees, because a member has gone down or stalled, or is back.
// A member that the view has removed keeps the trees it had: the new ones have no place
// for it.
func (m *Member) reroute() {
	if !m.roster.includes(m.config.Rank, m.config.Incarnation) {
		return
	}
	for _, f := range m.flowsByRoot() {
		_ = m.layTree(f) // impossible to fail: the same tree was made at the start
	}
	if o := &m.own; o.blockedSince > 0 { // perhaps by a member that does not count any more
		o.creditDue, m.due = 0, 0
	}
}

// layTree sets the members that feed this one, that it feeds, and whose
// acknowledgments it combines with its own.
func (m *Member) layTree(f *flow) error {
	tree, err := topology.New(m.config.Shape, topology.Interleaved, m.roster.slots, f.root)
	if err != nil {
		return fmt.Errorf("stream: tree of root %d: %w", f.root, err)
	}
	f.parent = protocol.NoRank
	for r := m.config.Rank; r != f.root; {
		r, _ = tree.Parent(r)
		if m.roster.has(r) {
			f.parent = r
			break
		}
	}
	f.children, f.ackers, f.grantors = nil, nil, nil
	m.addBelow(f, tree, m.config.Rank)
	return nil
}

// addBelow adds the nearest members below a rank. A member that is down or stalled is
// not fed, but must acknowledge before anything is stable, and in a view also grant
// credits, until a view without it is installed. A static group has no such view: its
// roots send without the credits of such a member.
func (m *Member) addBelow(f *flow, tree topology.Tree, r protocol.Rank) {
	for i := 0; ; i++ {
		child, ok := tree.Child(r, i)
		if !ok {
			return
		}
		member, avoided := m.roster.has(child), m.avoids(child)
		if member && !avoided {
			f.children = append(f.children, child)
		}
		if member {
			f.ackers = append(f.ackers, child)
		}
		if member && (!avoided || !m.static()) {
			f.grantors = append(f.grantors, child)
		}
		if !member || avoided {
			m.addBelow(f, tree, child)
		}
	}
}

// avoids reports whether trees bypass a member.
func (m *Member) avoids(r protocol.Rank) bool {
	b := m.backlogs[r]
	return m.down[r] || m.stalled[r] || b != nil && b.expired
}

// static reports whether the group has no views.
func (m *Member) static() bool { return m.view == 0 }

// setDown records whether a peer can be reached.
func (m *Member) setDown(peer protocol.Rank, down bool) { m.avoid(m.down, peer, down) }

// setStalled records whether a member does not answer polls.
func (m *Member) setStalled(peer protocol.Rank, stalled bool) { m.avoid(m.stalled, peer, stalled) }

// avoid adds a member to one of the sets of bypassed members, or removes it.
func (m *Member) avoid(set map[protocol.Rank]bool, peer protocol.Rank, in bool) {
	if set[peer] == in {
		return
	}
	if in {
		set[peer] = true
	} else {
		delete(set, peer)
	}
	m.reroute()
}
