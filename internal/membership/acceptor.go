package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// round is what a member, as an acceptor, holds about the view after the present
// one. It begins anew with every view.
//
// Invariants, on which same-view delivery rests:
//
//   - A value's survivors all took part in the ballot that first proposed it.
//   - Who takes part in a ballot is frozen, and holds the ballot, until the
//     ballot's owner says that it never proposed anything in it. A ballot that
//     was proposed is held until the view is decided, by whomever.
//
// So between a survivor's report of what it has and the decision, it neither
// sends nor delivers anything beyond the cut.
type acceptor struct {
	promised Ballot   // no lower ballot is answered
	accepted Ballot   // the highest in which a value was accepted
	value    *value   // that was accepted then
	holds    []Ballot // for which this member is frozen
	frozen   bool
	since    protocol.Time // when it froze
	stuck    bool          // somebody has been frozen for long, and nobody seems to attempt anything
	current  *ballotState  // in the ballot promised last
	proposed Ballot        // the last that this member itself has proposed in
	decided  *value        // what the next view is
	next     *View         // the next view, once decided
	began    protocol.Time // when this member first heard of the change
	tried    protocol.Time // since when this member attempts it; 0: it does not
	silence  silence       // who does not answer
}

// part is a member's part in one ballot: a place in the tree laid over those who
// take part, and what has come up from below.
type ballotState struct {
	ballot   Ballot
	members  set  // who take part
	flat     bool // without a tree: all others are the owner's children
	children []protocol.Rank
	subtree  set             // this member and all below it
	askers   []protocol.Rank // who is to have an acknowledgment: the parent, and who asked directly
	acked    set             // who has acknowledged, of this phase
	proposal *value          // nil while gathering

	// What promises say, merged.
	positions []Position
	accepted  Ballot
	value     *value
}

// newPart lays the tree over those who take part, in order of their ranks, from
// the ballot's owner. If they are few, all are the owner's children.
func (m *Machine) newBallotState(b Ballot, members set) (*ballotState, error) {
	p := &ballotState{ballot: b, members: members, subtree: newSet(len(m.view.Members)), acked: newSet(len(m.view.Members))}
	list := m.memo.list(members)
	if p.flat = len(list) <= m.config.FlatThreshold; p.flat {
		p.subtree.add(m.self)
		if b.Rank == m.config.Self.Rank {
			p.subtree, p.children = members, m.others(list)
		}
		return p, nil
	}
	owner, _ := m.view.index(b.Rank)
	root, _ := slices.BinarySearch(list, owner)
	me, _ := slices.BinarySearch(list, m.self)
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, protocol.Rank(len(list)), protocol.Rank(root))
	if err != nil {
		return nil, err
	}
	for child := range topology.Children(tree, protocol.Rank(me)) {
		p.children = append(p.children, m.view.Members[list[child]].Rank)
	}
	for below := range topology.Subtree(tree, protocol.Rank(me)) {
		p.subtree.add(list[below])
	}
	return p, nil
}

// others returns the ranks of some members but for this one.
func (m *Machine) others(indices []int) []protocol.Rank {
	ranks := make([]protocol.Rank, 0, len(indices))
	for _, i := range indices {
		if i != m.self {
			ranks = append(ranks, m.view.Members[i].Rank)
		}
	}
	return ranks
}

// ask notes who is to have the acknowledgment.
func (p *ballotState) addAsker(by protocol.Rank) {
	if !slices.Contains(p.askers, by) {
		p.askers = append(p.askers, by)
	}
}

// freeze stops the log, and returns what it has.
func (m *Machine) freeze(now protocol.Time) []Position {
	if !m.acceptor.frozen {
		m.acceptor.frozen, m.acceptor.since = true, now
		m.status.soon(now + 2*m.config.AttemptTimeout)
	}
	positions := slices.Clone(m.config.Log.Freeze())
	for i := range positions {
		positions[i].Holder = m.config.Self.Rank
	}
	slices.SortFunc(positions, compareStream)
	return positions
}

// hold notes that this member is frozen for a ballot. Of one owner, the first and
// the last are enough: if the first is not let go, neither are those between.
func (r *acceptor) hold(b Ballot) {
	seen := false
	r.holds = slices.DeleteFunc(r.holds, func(h Ballot) bool {
		again := seen && h.Rank == b.Rank
		seen = seen || h.Rank == b.Rank
		return again
	})
	r.holds = append(r.holds, b)
}

// release lets go of the ballots of an owner, above the one it proposed in last
// and up to one it has given up. Who holds none any more may go on.
func (m *Machine) release(upTo, proposed Ballot) {
	r := &m.acceptor
	r.holds = slices.DeleteFunc(r.holds, func(b Ballot) bool {
		return b.Rank == upTo.Rank && b.Round <= upTo.Round && b.Round > proposed.Round
	})
	if r.frozen && len(r.holds) == 0 {
		r.frozen = false
		m.config.Log.Thaw()
	}
}
