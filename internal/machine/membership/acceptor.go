package membership

import (
	"slices"
	"sort"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// acceptor is the state of a member in the Paxos instance for the next view. It
// begins empty with every view.
//
// Invariants, on which same-view delivery rests:
//
//   - All survivors of a value participated in the ballot that first proposed it.
//   - A participant of a ballot is frozen, and holds the ballot, until the owner
//     of the ballot says that it never proposed anything in it. A ballot with a
//     proposal is held until the view is decided, in whichever ballot.
//
// So between a survivor's promise with its positions and the decision, the survivor
// neither sends nor delivers anything beyond the cut.
type acceptor struct {
	promised Ballot   // no lower ballot is accepted
	accepted Ballot   // the highest in which this member accepted a value
	value    *value   // accepted in that ballot
	holds    []Ballot // ballots for which this member is frozen
	frozen   bool
	since    protocol.Time // when it froze
	stuck    bool          // a member has been frozen for long, and no attempt seems to run
	current  *ballotState  // of the ballot promised last
	proposed Ballot        // the last ballot that this member has proposed in
	decided  *value        // the decision
	next     *View         // the next view, once decided
	own      bool          // this member has decided it, maybe by its own vote alone
	ends     error         // why the decision ends this member, once its vote is saved; nil: it does not
	began    protocol.Time // when this member first learned of the change
	tried    protocol.Time // since when this member attempts it; 0: it does not
	news     news          // members that are excluded since
	spared   int           // attempts that have begun again, see spares
	forced   set           // members that an operator lets decide without a quorum (ForceView); nil: none
}

// ballotState is the state of a member in one ballot: its position in the tree over
// the participants, and the acknowledgments of its subtree.
type ballotState struct {
	ballot   Ballot
	members  set  // the participants
	flat     bool // no tree: all others are children of the owner
	children []protocol.Rank
	subtree  set             // along a tree: this member and all below it; empty at the owner
	askers   []protocol.Rank // receivers of the acknowledgment: the parent, and members that asked directly
	acked    set             // members that have acknowledged in this phase
	proposal *value          // nil in phase 1

	// The promises, merged.
	positions []Position
	accepted  Ballot
	value     *value
}

// newBallotState lays the tree over the participants, in order of their ranks, with
// the owner of the ballot as its root. If they are few, all are children of the owner.
func (m *Machine) newBallotState(b Ballot, members set) *ballotState {
	p := &ballotState{
		ballot: b, members: members, subtree: newSet(m.view.Members.Len()),
		acked: newSet(m.view.Members.Len()),
	}
	owner, size := b.Rank == m.config.Self.Rank, members.count()
	p.flat = size <= m.config.FlatThreshold
	if p.flat {
		if owner {
			p.children = m.others(members.each())
		}
		return p
	}
	among := participants(members.complement(m.view.Members.Len()).each())
	root, _ := m.view.index(b.Rank)
	// there is one over any participants
	tree, _ := topology.New(topology.Binomial(), topology.Interleaved, protocol.Rank(size), among.position(root))
	me := among.position(m.self)
	for child := range topology.Children(tree, me) {
		p.children = append(p.children, m.view.Members.At(among.index(child)).Rank)
	}
	if !owner { // which waits for all participants
		for below := range topology.Subtree(tree, me) {
			p.subtree.add(among.index(below))
		}
	}
	return p
}

// participants are the members of a view that take part in a ballot, as the ascending
// indices of those that do not, which are few.
type participants []int

// position returns the position of a member among the participants.
func (p participants) position(index int) protocol.Rank {
	before, _ := slices.BinarySearch(p, index)
	return protocol.Rank(index - before)
}

// index returns the index of the participant at a position.
func (p participants) index(position protocol.Rank) int {
	return int(position) + sort.Search(len(p), func(i int) bool { return p[i]-i > int(position) })
}

// others returns the ranks of the given members, without this one.
func (m *Machine) others(indices []int) []protocol.Rank {
	ranks := make([]protocol.Rank, 0, len(indices))
	for _, i := range indices {
		if i != m.self {
			ranks = append(ranks, m.view.Members.At(i).Rank)
		}
	}
	return ranks
}

// addAsker adds a receiver of the acknowledgment.
func (p *ballotState) addAsker(by protocol.Rank) {
	if !slices.Contains(p.askers, by) {
		p.askers = append(p.askers, by)
	}
}

// freeze stops the log and returns its positions.
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

// hold records that this member is frozen for a ballot. Of one owner, the first and
// the last ballot suffice: while the first is held, so are those between.
func (r *acceptor) hold(b Ballot) {
	seen := false
	r.holds = slices.DeleteFunc(r.holds, func(h Ballot) bool {
		again := seen && h.Rank == b.Rank
		seen = seen || h.Rank == b.Rank
		return again
	})
	r.holds = append(r.holds, b)
}

// release drops the held ballots of an owner, above the one it proposed in last and
// up to one it has abandoned. A member that holds no ballot thaws.
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
