package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// proposer is an attempt of this member to decide the next view: one ballot of Paxos,
// with this member as its owner.
type proposer struct {
	ballot   Ballot
	asked    protocol.Time // when this phase began; 0: most participants have answered
	resend   protocol.Time // when to ask the members that have not acknowledged again, directly
	tries    int
	shown    protocol.Time // when all participants were last shown that the coordinator is not silent
	deadline protocol.Time // when to abandon unless another acknowledgment comes; Never once proposed
	grace    protocol.Time // not abandoned for further deaths before
	restart  protocol.Time // when to abandon because participants have died; Never: none has
}

// begin attempts a change with those members as participants, if they are a quorum. If the arbiter
// may make them one, it is asked.
func (m *Machine) begin(now protocol.Time, members set) {
	if !m.isQuorum(members) {
		m.claim(members)
		return
	}
	b := Ballot{max(m.acceptor.promised.Round, m.seen) + 1, m.config.Self.Rank}
	if !m.reserve(b) {
		return
	}
	if m.acceptor.tried == 0 {
		m.acceptor.tried = now
	}
	m.proposer = &proposer{
		ballot: b, asked: now, resend: now + m.askAgain(0), shown: now, deadline: now + m.attemptWait(),
		grace: 2*now - m.acceptor.tried, restart: protocol.Never,
	}
	m.acceptor.news.begun = now
	m.stats.Ballots++
	_ = m.handlePrepare(now, &frame{
		kind: Prepare, from: m.config.Self.Rank, ballot: b, other: m.acceptor.proposed,
		members: members,
	})
}

// reconsider checks a running attempt after any event. A participant that is now
// known to be dead will never acknowledge, and may be the only holder of a message
// to flush: the next attempt leaves it out. But an attempt first runs for as long as
// all attempts before it together, so that many deaths, which are reported one by
// one, make few attempts. If only the dead have not promised, there is nothing to wait
// for.
func (m *Machine) reconsider(now protocol.Time, excluded set, coordinator protocol.Rank) {
	p := m.acceptor.current
	m.proposer.restart = protocol.Never
	if p.members.meets(excluded) {
		m.proposer.restart = max(now, m.proposer.grace)
		if p.lacksOnly(excluded) {
			m.proposer.restart = now
		}
		if m.proposer.restart == now {
			m.abandon()
			m.pause = now
		}
		return
	}
	if p.proposal == nil && (coordinator != m.config.Self.Rank || !m.wants(now, excluded)) {
		m.abandon()
	}
}

// lacksOnly reports whether no participants but those of a set have yet to promise.
func (p *ballotState) lacksOnly(s set) bool {
	return p.proposal == nil && !slices.ContainsFunc(p.missing(), func(i int) bool { return !s.has(i) })
}

// news is when the members to exclude have changed. Many deaths are reported one by one,
// and an attempt that begins before the last of the reports is in vain.
type news struct {
	excluded int
	last     protocol.Time
	begun    protocol.Time // the last attempt
}

// note takes in the members to exclude, after any event.
func (n *news) note(now protocol.Time, excluded set) {
	if count := excluded.count(); count != n.excluded {
		n.excluded, n.last = count, now
	}
}

// quietAt returns when the next attempt after the first may begin: once there were no news
// for a while, in proportion to the time in which they came.
func (m *Machine) quietAt() protocol.Time {
	r := &m.acceptor
	if r.tried == 0 {
		return 0
	}
	return min(r.news.last+min((r.news.last-r.tried)/quietShare, m.config.RetryInterval),
		r.news.begun+m.config.AttemptTimeout)
}

// quietShare is how many times as long as that while the news came.
const quietShare = 8

// abandon ends an attempt. If nothing was proposed in it, it cancels the ballot, and
// members that are frozen for it thaw.
func (m *Machine) abandon() {
	b, past := m.proposer.ballot, m.proposer.tries > 0
	m.proposer = nil
	if p := m.acceptor.current; p.proposal == nil {
		m.stats.Canceled++
		for _, i := range p.members.each() {
			if past && i != m.self { // asked directly, so also canceled directly
				m.put(m.view.Members.At(i).Rank, frame{kind: Cancel, ballot: b, other: m.acceptor.proposed})
			}
		}
		m.handleCancel(m.now, &frame{ballot: b, other: m.acceptor.proposed})
	}
}

// yield abandons the attempt for a higher ballot and backs off.
func (m *Machine) yield(now protocol.Time) {
	m.abandon()
	m.pause = now + m.retreat()
}

// handleRefuse yields to the higher ballot that a member has promised.
func (m *Machine) handleRefuse(now protocol.Time, f *frame) {
	m.seen = max(m.seen, f.other.Round)
	if m.proposer != nil && m.proposer.ballot == f.ballot && f.ballot.less(f.other) {
		m.yield(now)
	}
}

// runProposer asks the members that have not acknowledged again, and now and then
// all. It abandons an attempt that gets no further acknowledgment for too long: a
// member is slow, or silent, but not suspected.
func (m *Machine) runProposer(now protocol.Time) {
	if m.proposer == nil {
		return
	}
	if m.proposer.deadline <= now {
		missing := m.acceptor.current.missing()
		m.abandon()
		m.pause = now + m.retreat()
		m.attemptTimeout = 2 * m.attemptWait()
		m.await(now, missing)
		m.abstain()
		if now-m.acceptor.tried >= m.patience() {
			m.silenced(missing...)
		}
		return
	}
	if m.proposer.resend > now {
		return
	}
	m.proposer.resend = now + m.askAgain(m.proposer.tries)
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
			m.put(m.view.Members.At(i).Rank, again)
		}
	}
}

// missing returns the participants that have not acknowledged.
func (p *ballotState) missing() (missing []int) {
	for _, i := range p.members.each() {
		if !p.acked.has(i) {
			missing = append(missing, i)
		}
	}
	return missing
}

// advanceProposer goes from promises to a proposal once all participants have
// promised, and from there to a decision once a quorum has accepted.
func (m *Machine) advanceProposer(now protocol.Time, p *ballotState) {
	if m.proposer.asked > 0 && 2*p.acked.count() > p.members.count() {
		m.learnAnswers(m.proposer.asked)
		m.proposer.asked = 0
	}
	all := p.acked.covers(p.members)
	switch {
	case p.proposal == nil && all && m.spares(p):
		m.abandon()
		m.pause = now
	case p.proposal == nil && all:
		m.propose(now, p)
	case p.proposal != nil && (all || !m.config.NoQuorum && m.isQuorum(p.acked)):
		// Without majorities, only the acceptance of all survives the death of any.
		m.decide(now, p.proposal, m.config.Self.Rank)
	}
}

// spares reports whether an attempt that is about to propose leaves out a member that is not
// excluded any more: it was only slow, and has been heard since. Nothing is proposed yet, so
// the attempt begins again with that member, but not over and over for one that comes and
// goes.
func (m *Machine) spares(p *ballotState) bool {
	r := &m.acceptor
	if p.value != nil || r.spared == maxSpared || p.members.covers(m.survivors(m.excluded())) {
		return false
	}
	r.spared++
	return true
}

// maxSpared is how many attempts at a view begin again for that reason.
const maxSpared = 3
