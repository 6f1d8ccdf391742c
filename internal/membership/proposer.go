package membership

import "github.com/pleach-go/pleach/protocol"

// lead is an attempt of this member to decide the next view.
type proposer struct {
	ballot   Ballot
	resend   protocol.Time // when to ask again, past the tree, who has not acknowledged
	tries    int
	shown    protocol.Time // when all were last shown that there is an attempt: it is not silent
	deadline protocol.Time // when the attempt is given up unless another acknowledgment comes; Never once proposed
	grace    protocol.Time // not given up for further deaths before
	restart  protocol.Time // when it is given up for those that are known; Never: for none
}

// begin attempts a change with those members, if they are enough.
func (m *Machine) begin(now protocol.Time, members set) {
	if !m.isQuorum(members) {
		return
	}
	b := Ballot{max(m.acceptor.promised.Round, m.seen) + 1, m.config.Self.Rank}
	if m.acceptor.tried == 0 {
		m.acceptor.tried = now
	}
	m.proposer = &proposer{
		ballot: b, resend: now + m.config.RetryInterval, shown: now, deadline: now + m.attemptTimeout,
		grace: 2*now - m.acceptor.tried, restart: protocol.Never,
	}
	m.stats.Ballots++
	_ = m.handlePrepare(now, &frame{kind: Prepare, from: m.config.Self.Rank, ballot: b, other: m.acceptor.proposed, members: members})
}

// reconsider looks at a running attempt after anything has happened. Who takes
// part but is now known to be dead will never acknowledge, and may be the only
// one to hold what is to be flushed: a next attempt goes without it. But an
// attempt is first given as long as all those before it took together, so that
// many deaths, which are reported one by one, make few attempts.
func (m *Machine) reconsider(now protocol.Time, excluded set, coordinator protocol.Rank) {
	p := m.acceptor.current
	m.proposer.restart = protocol.Never
	for _, i := range p.members.each() {
		if excluded.has(i) {
			if m.proposer.restart = max(now, m.proposer.grace); m.proposer.restart == now {
				m.abandon()
				m.pause = now
			}
			return
		}
	}
	if p.proposal == nil && (coordinator != m.config.Self.Rank || !m.wants(now, excluded)) {
		m.abandon()
	}
}

// giveUp ends an attempt. If nothing was proposed in it, those who are frozen
// for it may go on.
func (m *Machine) abandon() {
	b, past := m.proposer.ballot, m.proposer.tries > 0
	m.proposer = nil
	if p := m.acceptor.current; p.proposal == nil {
		m.stats.Canceled++
		for _, i := range p.members.each() {
			if past && i != m.self { // who was asked past a relay is told past it too
				m.put(m.view.Members[i].Rank, frame{kind: Cancel, ballot: b, other: m.acceptor.proposed})
			}
		}
		m.handleCancel(m.now, &frame{ballot: b, other: m.acceptor.proposed})
	}
}

// stepBack leaves the field to a higher ballot for a while, which is longer for
// higher ranks, so that two do not go on outbidding each other.
func (m *Machine) yield(now protocol.Time) {
	m.abandon()
	m.pause = now + m.attemptTimeout + m.rankBackoff()
}

// handicap makes higher ranks wait a little longer.
func (m *Machine) rankBackoff() protocol.Time {
	return protocol.Time(min(m.self, maxRankBackoff)) * m.config.RetryInterval
}

const maxRankBackoff = 8

// hearRefuse learns that a higher ballot is about.
func (m *Machine) handleRefuse(now protocol.Time, f *frame) {
	m.seen = max(m.seen, f.other.Round)
	if m.proposer != nil && m.proposer.ballot == f.ballot && f.ballot.less(f.other) {
		m.yield(now)
	}
}

// runLead asks again those who have not acknowledged, and now and then all. It gives
// up an attempt that gets no further acknowledgment for too long: a member is slow, or
// silent, but not suspected.
func (m *Machine) runProposer(now protocol.Time) {
	if m.proposer == nil {
		return
	}
	if m.proposer.deadline <= now {
		silent := m.silent(now)
		m.abandon()
		m.pause = now + m.attemptTimeout + m.rankBackoff()
		m.attemptTimeout = min(2*m.attemptTimeout, m.config.maxAttemptTimeout())
		if len(silent) > 0 {
			m.silenced(silent...)
			m.consider(now)
		}
		return
	}
	if m.proposer.resend > now {
		return
	}
	m.proposer.resend = now + m.backoff(m.proposer.tries)
	m.proposer.tries++
	p := m.acceptor.current
	again := frame{kind: Prepare, ballot: p.ballot, other: m.acceptor.proposed, members: p.members}
	if p.proposal != nil {
		again = frame{kind: Propose, ballot: p.ballot, value: p.proposal}
	}
	all := now >= m.proposer.shown+m.config.AckTimeout/2
	if all {
		m.proposer.shown = now
	}
	for _, i := range p.members.each() {
		if i != m.self && (all || !p.acked.has(i)) {
			m.put(m.view.Members[i].Rank, again)
		}
	}
}

// silent returns the members that have not acknowledged for longer than patience,
// although no detector suspects them. Detectors may be blind, and such a member must
// not hold up the others for ever: the next attempt goes without it.
func (m *Machine) silent(now protocol.Time) (silent []int) {
	p := m.acceptor.current
	if p.proposal != nil || now-m.acceptor.tried < m.config.AckTimeout {
		return nil
	}
	for _, i := range p.members.each() {
		if !p.acked.has(i) && i != m.self {
			silent = append(silent, i)
		}
	}
	return silent
}

// advanceLead goes from promises to a proposal once all have promised, and from
// there to a decision once enough have accepted.
func (m *Machine) advanceProposer(now protocol.Time, p *ballotState) {
	all := p.acked.covers(p.members)
	switch {
	case p.proposal == nil && all:
		m.propose(now, p)
	case p.proposal != nil && (all || !m.config.NoQuorum && m.isQuorum(p.acked)):
		// Without majorities, only the word of all survives any of them.
		m.decide(now, p.proposal, m.config.Self.Rank)
	}
}
