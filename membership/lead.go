package membership

import "github.com/pleach-go/pleach/protocol"

// lead is an attempt of this member to decide the next view.
type lead struct {
	ballot Ballot
	resend protocol.Time // when to ask again, past the tree, who has not acknowledged
	tries  int
	shown  protocol.Time // when all were last shown that there is an attempt: it is not silent
	bound  protocol.Time // when the attempt is given up unless another acknowledgment comes; Never once proposed
	spared protocol.Time // not given up for further deaths before
	retry  protocol.Time // when it is given up for those that are known; Never: for none
}

// begin attempts a change with those members, if they are enough.
func (m *Machine) begin(now protocol.Time, members set) {
	if !m.enough(members) {
		return
	}
	b := Ballot{max(m.round.promised.Round, m.seen) + 1, m.config.Self.Rank}
	if m.round.tried == 0 {
		m.round.tried = now
	}
	m.lead = &lead{
		ballot: b, resend: now + m.config.Resend, shown: now, bound: now + m.bound,
		spared: 2*now - m.round.tried, retry: protocol.Never,
	}
	m.stats.Ballots++
	_ = m.hearPrepare(now, &frame{kind: Prepare, from: m.config.Self.Rank, ballot: b, other: m.round.proposed, members: members})
}

// reconsider looks at a running attempt after anything has happened. Who takes
// part but is now known to be dead will never acknowledge, and may be the only
// one to hold what is to be flushed: a next attempt goes without it. But an
// attempt is first given as long as all those before it took together, so that
// many deaths, which are reported one by one, make few attempts.
func (m *Machine) reconsider(now protocol.Time, doomed set, leader protocol.Rank) {
	p := m.round.part
	m.lead.retry = protocol.Never
	for _, i := range p.members.each() {
		if doomed.has(i) {
			if m.lead.retry = max(now, m.lead.spared); m.lead.retry == now {
				m.giveUp()
				m.pause = now
			}
			return
		}
	}
	if p.proposal == nil && (leader != m.config.Self.Rank || !m.wants(now, doomed)) {
		m.giveUp()
	}
}

// giveUp ends an attempt. If nothing was proposed in it, those who are frozen
// for it may go on.
func (m *Machine) giveUp() {
	b, past := m.lead.ballot, m.lead.tries > 0
	m.lead = nil
	if p := m.round.part; p.proposal == nil {
		m.stats.Voided++
		for _, i := range p.members.each() {
			if past && i != m.self { // who was asked past a relay is told past it too
				m.put(m.view.Members[i].Rank, frame{kind: Void, ballot: b, other: m.round.proposed})
			}
		}
		m.hearVoid(m.now, &frame{ballot: b, other: m.round.proposed})
	}
}

// stepBack leaves the field to a higher ballot for a while, which is longer for
// higher ranks, so that two do not go on outbidding each other.
func (m *Machine) stepBack(now protocol.Time) {
	m.giveUp()
	m.pause = now + m.bound + m.handicap()
}

// handicap makes higher ranks wait a little longer.
func (m *Machine) handicap() protocol.Time {
	return protocol.Time(min(m.self, maxHandicap)) * m.config.Resend
}

const maxHandicap = 8

// hearRefuse learns that a higher ballot is about.
func (m *Machine) hearRefuse(now protocol.Time, f *frame) {
	m.seen = max(m.seen, f.other.Round)
	if m.lead != nil && m.lead.ballot == f.ballot && f.ballot.less(f.other) {
		m.stepBack(now)
	}
}

// runLead asks again those who have not acknowledged, and now and then all. It gives
// up an attempt that gets no further acknowledgment for too long: a member is slow, or
// silent, but not suspected.
func (m *Machine) runLead(now protocol.Time) {
	if m.lead == nil {
		return
	}
	if m.lead.bound <= now {
		silent := m.silent(now)
		m.giveUp()
		m.pause = now + m.bound + m.handicap()
		m.bound = min(2*m.bound, m.config.maxBound())
		if len(silent) > 0 {
			m.silenced(silent...)
			m.consider(now)
		}
		return
	}
	if m.lead.resend > now {
		return
	}
	m.lead.resend = now + m.backoff(m.lead.tries)
	m.lead.tries++
	p := m.round.part
	again := frame{kind: Prepare, ballot: p.ballot, other: m.round.proposed, members: p.members}
	if p.proposal != nil {
		again = frame{kind: Propose, ballot: p.ballot, value: p.proposal}
	}
	all := now >= m.lead.shown+m.config.Patience/2
	if all {
		m.lead.shown = now
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
	p := m.round.part
	if p.proposal != nil || now-m.round.tried < m.config.Patience {
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
func (m *Machine) advanceLead(now protocol.Time, p *part) {
	all := p.acked.covers(p.members)
	switch {
	case p.proposal == nil && all:
		m.propose(now, p)
	case p.proposal != nil && (all || !m.config.NoQuorum && m.enough(p.acked)):
		// Without majorities, only the word of all survives any of them.
		m.decide(now, p.proposal, m.config.Self.Rank)
	}
}
