package membership

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// propose begins phase 2 of Paxos. It proposes the value that an earlier ballot may
// have decided, or else a value of its own. A proposer that learns of a value
// proposes it unchanged, and leaves the changes it has collected to the view after:
// blending the two is a known bug of view changes.
func (m *Machine) propose(now protocol.Time, p *ballotState) {
	v := p.value
	if v == nil {
		v = m.compose(p.members, p.positions)
	}
	m.acceptor.proposed = p.ballot
	m.voted()
	m.proposer.asked, m.proposer.deadline, m.proposer.resend, m.proposer.tries = now, protocol.Never, now+m.askAgain(0), 0
	_ = m.handlePropose(now, &frame{kind: Propose, from: m.config.Self.Rank, ballot: p.ballot, value: v})
}

// compose returns the value that this member proposes if it is free to choose: the
// participants stay, except those that leave or give way to a candidate with their
// identity, candidates are added, and members get the metas and roles that they want. The number
// of the view is the incarnation of the candidates.
func (m *Machine) compose(members set, cut []Position) *value {
	v := &value{
		number: m.view.Number + 1, slots: m.view.Slots, removed: members.complement(m.view.Members.Len()),
		cut: cut,
	}
	for _, l := range m.leavers {
		i, _ := m.view.index(l.rank)
		v.removed.add(i)
	}
	voters := m.votersWithout(v.removed)
	candidates := m.candidatesLeaving(voters)
	for _, c := range candidates {
		if holder, ok := m.givesWay(c); ok {
			v.removed.add(holder)
		}
	}
	a := assigner{
		slots: m.view.Slots, occupied: m.view.Members.change(m.view.ranksOf(v.removed)),
		before: &m.view, named: m.named,
	}
	v.version = m.nextVersion(a.occupied)
	bytes := 0
	for _, c := range candidates {
		joiner := c.Member
		joiner.Incarnation = v.number
		bytes += len(appendMember(nil, &joiner))
		if bytes > addedBytes {
			break
		}
		if a.assign(&joiner) {
			v.added = append(v.added, joiner)
		}
	}
	m.composeMetas(v, voters, bytes)
	if a.occupied.observers() == a.occupied.Len() { // the last voter leaves: a view needs one
		v.removed.remove(m.self)
		a.occupied = a.occupied.change(nil, *m.view.Members.At(m.self))
	}
	m.composeReasons(v)
	slices.SortFunc(v.added, byRank)
	v.slots = a.compact()
	return v
}

// handlePropose handles a proposal: pass it on, and fetch what is missing up to its
// cut.
func (m *Machine) handlePropose(now protocol.Time, f *frame) error {
	p := m.acceptor.current
	switch {
	case f.ballot.less(m.acceptor.promised):
		m.refuse(f.ballot)
		return nil
	case p == nil || p.ballot != f.ballot:
		return nil
	case p.proposal != nil:
		m.acknowledgeAgain(f)
		return nil
	}
	if _, err := m.apply(f.value); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	p.proposal = f.value
	p.acked = newSet(m.view.Members.Len())
	p.askers = append(p.askers[:0], f.from)
	for _, child := range p.children {
		m.put(child, frame{kind: Propose, ballot: f.ballot, value: f.value})
	}
	m.config.Log.Flush(f.value.cut)
	m.tryAccept(now)
	return nil
}

// tryAccept accepts the proposal once everything up to its cut is here. So when a
// value is decided, a majority has all messages up to the cut, and the death of the
// only member that had one before cannot leave the others waiting for it.
func (m *Machine) tryAccept(now protocol.Time) {
	r := &m.acceptor
	p := r.current
	if p == nil || p.ballot != r.promised || p.proposal == nil || p.acked.has(m.self) || r.decided != nil {
		return
	}
	if !m.config.Log.Flushed() || m.restored && !m.othersHaveAccepted(p) {
		return
	}
	r.accepted, r.value = p.ballot, p.proposal
	m.voted()
	p.acked.add(m.self)
	m.advance(now)
}

// othersHaveAccepted reports whether a restarted voter, which has no messages, may accept: its vote says
// nothing about them, so that others vote first where it can see that. A later ballot would
// otherwise have to propose a value again whose messages only a member had that is dead now.
func (m *Machine) othersHaveAccepted(p *ballotState) bool {
	with := slices.Clone(p.acked)
	with.add(m.self)
	if p.ballot.Rank == m.config.Self.Rank {
		return with.covers(p.members) || m.isQuorum(with)
	}
	return with.covers(p.subtree)
}

// handleAccept merges the members that have accepted.
func (m *Machine) handleAccept(now protocol.Time, f *frame) {
	p := m.acceptor.current
	if p == nil || p.ballot != f.ballot || p.proposal == nil {
		return
	}
	p.acked.union(f.members)
	if m.restored {
		m.tryAccept(now)
	}
	m.advance(now)
}
