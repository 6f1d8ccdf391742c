package membership

import (
	"errors"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// In a group that has an arbiter, exactly half of the voters is not yet a quorum, not even with
// the lowest one. It becomes one for the next view when the arbiter, which is outside of the group,
// grants that view to it: then either half can continue without the other. The arbiter grants a view
// to one side only. So any two quorums for a view intersect, as Paxos requires: a majority meets
// every half, and of two halves that do not meet, one has no grant.
//
// A grant adds a quorum to those of one view, for both phases of the agreement, and nothing takes
// it away. So it does not matter how late answers come, and how often, as long as one about
// another view, or another half, counts for nothing.
//
// A member that has asked wants the view that it has asked for, even if the others are back
// meanwhile: if it were granted, and nobody decided it, the other side could not continue in that
// view.

// ErrArbiterQuorum: without majorities, there is nothing for an arbiter to decide.
var ErrArbiterQuorum = errors.New("membership: a group that needs no quorum has no arbiter")

// Claim is a question to the arbiter: may these voters decide the next view?
type Claim struct {
	View uint64   // the number of the next view
	Side []Member // half of the voters of the present view, by rank
}

// Verdict is what an arbiter says about a claim.
type Verdict uint8

// The verdicts.
const (
	Unknown Verdict = iota // it has not been asked, or has not answered
	Granted
	Refused    // the view, or a later one, is granted to another side
	Unanswered // it could not be asked, or has not answered in time: it may have granted the view
)

// arbitration is what this member knows from the arbiter about the next view.
type arbitration struct {
	side    set           // what this member would claim now; nil: nothing
	asked   bool          // it has claimed the view
	granted set           // half of the voters, to which the view is granted; nil: none
	refused set           // half of them that it has refused; nil: none
	tries   int           // how often in a row the arbiter has not answered
	again   protocol.Time // it is not asked before
}

// claims are the questions of this member to the arbiter. They outlast views.
type claims struct {
	arbitration
	asking *Claim // not answered yet; nil: none
}

// maxClaimPause is the longest pause before the arbiter is asked again that has not answered, in
// times AttemptTimeout, which is the first one.
const maxClaimPause = 16

// claim makes the voters among some members those for which this member asks the arbiter, if they
// are half.
func (m *Machine) claim(members set) {
	if m.mayBeGranted(members) {
		m.claims.side = m.voting(members)
	}
}

// voting returns the voters among some members.
func (m *Machine) voting(s set) set {
	if m.electorate.voters == nil {
		return slices.Clone(s)
	}
	return s.common(m.electorate.voters)
}

// mayBeGranted reports whether the arbiter may let some members decide the next view: they are half
// of the voters, and it has not refused them, nor failed to answer just now.
func (m *Machine) mayBeGranted(s set) bool {
	c := &m.claims
	return m.config.Arbiter && m.acceptor.forced == nil && m.electorate.half(s) && m.now >= c.again &&
		(c.refused == nil || !s.covers(c.refused))
}

// mayDecide reports whether some members are a quorum, or the arbiter may make them one.
func (m *Machine) mayDecide(s set) bool { return m.isQuorum(s) || m.mayBeGranted(s) }

// NextClaim returns the next question to the arbiter, or false if there is none for now. There is
// none before Judge was called about the last one.
func (m *Machine) NextClaim() (Claim, bool) {
	c := &m.claims
	if c.side == nil || c.asking != nil || m.done != nil {
		return Claim{}, false
	}
	claim := Claim{View: m.view.Number + 1}
	for _, i := range c.side.each() {
		claim.Side = append(claim.Side, *m.view.Members.At(i))
	}
	c.asking, c.asked = &claim, true
	return claim, true
}

// Judge takes the arbiter's answer to a claim. An answer about another view, or about members that
// are not half of the voters, has no effect.
func (m *Machine) Judge(now protocol.Time, about Claim, v Verdict) {
	m.now = now
	c := &m.claims
	if c.asking != nil && c.asking.equal(&about) {
		c.asking = nil
	}
	side, ok := m.sideOf(&about)
	if !ok {
		return
	}
	switch v {
	case Granted:
		c.granted, c.tries, c.again = side, 0, 0
	case Refused:
		c.refused, c.tries, c.again = side, 0, 0
	default:
		c.again = now + min(m.config.AttemptTimeout<<min(c.tries, 20), maxClaimPause*m.config.AttemptTimeout)
		c.tries++
	}
}

// sideOf returns the members that a claim names, if they are half of the voters of the present
// view, and it asks for the next one.
func (m *Machine) sideOf(c *Claim) (set, bool) {
	side := newSet(m.view.Members.Len())
	for k := range c.Side {
		i, ok := m.view.index(c.Side[k].Rank)
		if !ok || !m.view.Holds(c.Side[k].Rank, c.Side[k].Incarnation) || !m.electorate.has(i) {
			return nil, false
		}
		side.add(i)
	}
	return side, m.config.Arbiter && c.View == m.view.Number+1 && m.electorate.half(side)
}

// equal reports whether two claims are for the same view and the same side.
func (c *Claim) equal(o *Claim) bool {
	return c.View == o.View && slices.EqualFunc(c.Side, o.Side, func(a, b Member) bool {
		return a.Rank == b.Rank && a.Incarnation == b.Incarnation
	})
}

// verdict returns what the arbiter has said about some members.
func (m *Machine) verdict(s set) Verdict {
	c := &m.claims
	switch {
	case !m.electorate.half(s):
		return Unknown
	case c.granted != nil && s.covers(c.granted):
		return Granted
	case c.refused != nil && s.covers(c.refused):
		return Refused
	case c.tries > 0:
		return Unanswered
	}
	return Unknown
}
