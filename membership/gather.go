package membership

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// hearPrepare takes part in a ballot: promise it, freeze, pass it on, and
// acknowledge once all below have. (Paxos, phase 1, and the first traversal of
// thesis §3.1.2.)
func (m *Machine) hearPrepare(now protocol.Time, f *frame) error {
	r := &m.round
	owner, _ := m.view.index(f.ballot.Rank)
	switch {
	case !f.members.has(owner) || !f.members.has(m.self):
		return fmt.Errorf("%w: ballot %v without its owner or its receiver", ErrFrame, f.ballot)
	case f.ballot.less(r.promised):
		m.refuse(f.ballot)
		return nil
	case f.ballot == r.promised:
		m.answerAgain(f)
		return nil
	}
	if m.lead != nil && m.lead.ballot != f.ballot {
		m.stepBack(now)
	}
	part, err := m.newPart(f.ballot, f.members)
	if err != nil {
		return err
	}
	if r.began == 0 {
		r.began = now
	}
	r.promised, r.part = f.ballot, part
	r.hold(f.ballot)
	m.release(Ballot{f.ballot.Round - 1, f.ballot.Rank}, f.other)
	part.haves = m.freeze(now)
	part.accepted, part.value = r.accepted, r.value
	part.ask(f.from)
	part.acked.add(m.self)
	if part.flat {
		m.status.soon(now + m.config.Resend) // what follows may get lost
	}
	for _, child := range part.children {
		m.put(child, frame{kind: Prepare, ballot: f.ballot, other: f.other, members: f.members})
	}
	if m.counts(f.members) && m.errand.to != f.ballot.Rank {
		m.errand.changed() // who attempts it must know; the coordinator has been told, or will be again
	}
	m.advance(now)
	return nil
}

// counts reports whether some members include one that is suspected here.
func (m *Machine) counts(s set) bool {
	return slices.ContainsFunc(m.suspicions.own, func(x suspect) bool {
		i, ok := m.view.index(x.rank)
		return ok && s.has(i) && x.incarnation >= m.view.Members[i].Incarnation
	})
}

// refuse tells the owner of a ballot that it comes too late.
func (m *Machine) refuse(b Ballot) {
	if b.Rank != m.config.Self.Rank {
		m.put(b.Rank, frame{kind: Refuse, ballot: b, other: m.round.promised})
	}
}

// answerAgain acknowledges what has come so far to one who asks a second time:
// the ballot's owner, past a relay that may be dead.
func (m *Machine) answerAgain(f *frame) {
	p := m.round.part
	if p == nil || p.ballot != f.ballot || (p.proposal != nil) != (f.kind == Propose) {
		return
	}
	p.ask(f.from)
	if p.acked.count() > 0 {
		m.acknowledge(f.from)
	}
}

// acknowledge sends what has come up so far.
func (m *Machine) acknowledge(to protocol.Rank) {
	p := m.round.part
	if to == m.config.Self.Rank {
		return
	}
	if p.proposal != nil {
		m.put(to, frame{kind: Accept, ballot: p.ballot, members: p.acked})
		return
	}
	m.put(to, frame{kind: Promise, ballot: p.ballot, other: p.accepted, members: p.acked, haves: p.haves, value: p.value})
}

// hearPromise merges what has come up from below: who, the largest of what they
// have, and the highest ballot in which anything was accepted.
func (m *Machine) hearPromise(now protocol.Time, f *frame) error {
	p := m.round.part
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
	if m.lead != nil && m.lead.ballot == p.ballot && p.acked.count() > before {
		m.lead.bound = now + m.bound // it gets on
	}
	p.haves = merge(p.haves, f.haves)
	if p.accepted.less(f.other) {
		p.accepted, p.value = f.other, f.value
	}
	m.advance(now)
	return nil
}

// advance goes on once all below have acknowledged; the owner of the ballot from
// promises to a proposal, and from a proposal to a decision.
func (m *Machine) advance(now protocol.Time) {
	p := m.round.part
	if m.lead != nil && m.lead.ballot == p.ballot {
		m.advanceLead(now, p)
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

// hearVoid takes in that a ballot is off: nothing was or will be proposed in it.
// Raising the promise keeps a Prepare that comes after from freezing anybody.
func (m *Machine) hearVoid(now protocol.Time, f *frame) {
	r := &m.round
	if m.lead != nil && m.lead.ballot.less(f.ballot) {
		m.stepBack(now)
	}
	if p := r.part; p != nil && p.ballot == f.ballot && slices.Contains(r.holds, f.ballot) {
		for _, child := range p.children {
			m.put(child, frame{kind: Void, ballot: f.ballot, other: f.other})
		}
		r.part = nil
	}
	if r.promised.less(f.ballot) {
		r.promised = f.ballot
	}
	m.release(f.ballot, f.other)
}
