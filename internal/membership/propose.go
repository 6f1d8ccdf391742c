package membership

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// propose proposes what an earlier ballot may have decided, or else what this
// member wishes for. (Paxos, phase 2. "A successor blends two view changes" is a
// bug others have had: whoever finds a value proposes that very value, and its
// own wishes wait for the view after.)
func (m *Machine) propose(now protocol.Time, p *part) {
	v := p.value
	if v == nil {
		v = m.compose(p.members, p.haves)
	}
	m.round.proposed = p.ballot
	m.lead.bound, m.lead.resend, m.lead.tries = protocol.Never, now+m.config.RetryInterval, 0
	_ = m.hearPropose(now, &frame{kind: Propose, from: m.config.Self.Rank, ballot: p.ballot, value: v})
}

// hearPropose takes a proposal: pass it on, and get what is missing up to its cut.
func (m *Machine) hearPropose(now protocol.Time, f *frame) error {
	p := m.round.part
	switch {
	case f.ballot.less(m.round.promised):
		m.refuse(f.ballot)
		return nil
	case p == nil || p.ballot != f.ballot:
		return nil
	case p.proposal != nil:
		m.answerAgain(f)
		return nil
	}
	if _, err := m.apply(f.value); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	p.proposal = f.value
	p.acked = newSet(len(m.view.Members))
	p.askers = append(p.askers[:0], f.from)
	for _, child := range p.children {
		m.put(child, frame{kind: Propose, ballot: f.ballot, value: f.value})
	}
	m.config.Log.Flush(f.value.cut)
	m.tryAccept(now)
	return nil
}

// tryAccept accepts the proposal once everything up to its cut is here. So when a
// value is decided, a majority has all of it, and the death of whoever had it
// alone cannot leave the others waiting for it.
func (m *Machine) tryAccept(now protocol.Time) {
	r := &m.round
	p := r.part
	if p == nil || p.ballot != r.promised || p.proposal == nil || p.acked.has(m.self) || r.decided != nil {
		return
	}
	if !m.config.Log.Flushed() {
		return
	}
	r.accepted, r.value = p.ballot, p.proposal
	p.acked.add(m.self)
	m.advance(now)
}

// hearAccept counts in who has accepted.
func (m *Machine) hearAccept(now protocol.Time, f *frame) {
	p := m.round.part
	if p == nil || p.ballot != f.ballot || p.proposal == nil {
		return
	}
	p.acked.union(f.members)
	m.advance(now)
}
