package membership

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// handlePrepare participates in a ballot: promise it, freeze, pass it on, and
// acknowledge once the whole subtree has. This is phase 1 of Paxos, and the first
// traversal of thesis §3.1.2.
func (m *Machine) handlePrepare(now protocol.Time, f *frame) error {
	r := &m.acceptor
	owner, _ := m.view.index(f.ballot.Rank)
	switch {
	case !f.members.has(owner) || !f.members.has(m.self):
		return fmt.Errorf("%w: ballot %v without its owner or its receiver", ErrFrame, f.ballot)
	case f.ballot.less(r.promised):
		m.refuse(f.ballot)
		return nil
	case f.ballot == r.promised:
		m.acknowledgeAgain(f)
		return nil
	}
	if m.proposer != nil && m.proposer.ballot != f.ballot {
		m.yield(now)
	}
	state := m.newBallotState(f.ballot, f.members)
	if r.began == 0 {
		r.began = now
	}
	r.promised, r.current = f.ballot, state
	if m.durable.reserved != f.ballot {
		m.voted()
	}
	r.hold(f.ballot)
	m.release(Ballot{f.ballot.Round - 1, f.ballot.Rank}, f.other)
	state.positions = m.freeze(now)
	state.accepted, state.value = r.accepted, r.value
	state.addAsker(f.from)
	state.acked.add(m.self)
	if state.flat {
		m.status.soon(now + m.config.RetryInterval) // the next frame may get lost
	}
	for _, child := range state.children {
		m.put(child, frame{kind: Prepare, ballot: f.ballot, other: f.other, members: f.members})
	}
	if m.includesSuspect(f.members) && m.reporter.to != f.ballot.Rank {
		m.reporter.changed() // the proposer must know; the reporter repeats reports to the coordinator anyway
	}
	m.advance(now)
	return nil
}

// includesSuspect reports whether s has a member that the detector of this member
// suspects.
func (m *Machine) includesSuspect(s set) bool {
	return slices.ContainsFunc(m.suspicions.own, func(x suspect) bool {
		i, ok := m.suspectIndex(x)
		return ok && s.has(i)
	})
}

// suspectsMember reports whether the detector of this member suspects any.
func (m *Machine) suspectsMember() bool {
	return slices.ContainsFunc(m.suspicions.own, func(x suspect) bool {
		_, ok := m.suspectIndex(x)
		return ok
	})
}

// suspectIndex returns the index of a suspected member. A suspicion of an older
// incarnation does not apply to a newer one.
func (m *Machine) suspectIndex(x suspect) (int, bool) {
	i, ok := m.view.index(x.rank)
	return i, ok && x.incarnation >= m.view.Members.At(i).Incarnation
}

// refuse tells the owner of a ballot that a higher one has been promised.
func (m *Machine) refuse(b Ballot) {
	m.put(b.Rank, frame{kind: Refuse, ballot: b, other: m.acceptor.promised})
}

// acknowledgeAgain sends the acknowledgments so far to a member that asks a second
// time: the owner of the ballot, around a relay that may be dead.
func (m *Machine) acknowledgeAgain(f *frame) {
	p := m.acceptor.current
	if p == nil {
		return
	}
	p.addAsker(f.from)
	if p.acked.count() > 0 {
		m.acknowledge(f.from)
	}
}

// acknowledge sends the acknowledgments of the subtree so far.
func (m *Machine) acknowledge(to protocol.Rank) {
	p := m.acceptor.current
	if to == m.config.Self.Rank {
		return
	}
	if p.proposal != nil {
		m.put(to, frame{kind: Accept, ballot: p.ballot, members: p.acked})
		return
	}
	m.put(to, frame{
		kind: Promise, ballot: p.ballot, other: p.accepted, members: p.acked, positions: p.positions,
		value: p.value,
	})
}

// handlePromise merges a promise from below: the members, their highest positions,
// and the value accepted in the highest ballot.
func (m *Machine) handlePromise(now protocol.Time, f *frame) error {
	p := m.acceptor.current
	if p == nil || p.ballot != f.ballot || p.proposal != nil {
		return nil
	}
	if f.value != nil {
		if _, err := m.apply(f.value); err != nil {
			return fmt.Errorf("%w: %w", ErrFrame, err)
		}
	}
	before := p.acked.count()
	p.acked.union(f.members)
	if m.proposer != nil && p.acked.count() > before {
		m.proposer.deadline = now + m.attemptWait() // it makes progress
	}
	p.positions = merge(p.positions, f.positions)
	if p.accepted.less(f.other) {
		p.accepted, p.value = f.other, f.value
	}
	m.advance(now)
	return nil
}

// advance acknowledges to the askers once the whole subtree has acknowledged. The
// owner of the ballot continues with the proposal or the decision instead.
func (m *Machine) advance(now protocol.Time) {
	p := m.acceptor.current
	if m.proposer != nil {
		m.advanceProposer(now, p)
		return
	}
	if !p.acked.covers(p.subtree) {
		return
	}
	for _, asker := range p.askers {
		m.acknowledge(asker)
	}
	p.askers = p.askers[:0]
}

// handleCancel ends a ballot: nothing was or will be proposed in it. It raises the
// promise, so that a late Prepare of the ballot freezes no member.
func (m *Machine) handleCancel(now protocol.Time, f *frame) {
	r := &m.acceptor
	if m.proposer != nil && m.proposer.ballot.less(f.ballot) {
		m.yield(now)
	}
	if p := r.current; p != nil && p.ballot == f.ballot {
		for _, child := range p.children {
			m.put(child, frame{kind: Cancel, ballot: f.ballot, other: f.other})
		}
		r.current = nil
	}
	if r.promised.less(f.ballot) {
		r.promised = f.ballot
	}
	m.release(f.ballot, f.other)
}
