package membership

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// pending is a candidate that has sent its request to this member and waits for the
// answer.
type pending struct {
	token     uint64
	candidate Member
	until     protocol.Time
}

// candidate is a process that waits at the coordinator for a view that includes it.
// The member that has its request repeats it; when that ends, the coordinator
// forgets the candidate.
type candidate struct {
	Member
	until protocol.Time
}

// Answer is the result of a [Machine.Join].
type Answer struct {
	Token uint64
	// View holds the candidate, at Rank. Cut is where the view began in the streams
	// of its roots. They are for the joiner's Config and Log.
	View View
	Rank protocol.Rank
	Cut  []Position
	// Err, if not nil, is why the candidate is refused.
	Err error
}

// Reasons to refuse a candidate.
var (
	// ErrStale: a newer incarnation of the candidate is known, or this one was
	// evicted. The candidate needs a larger incarnation.
	ErrStale = errors.New("membership: this incarnation of the candidate is over")
	// ErrFull: no slots are left, or too many candidates wait already.
	ErrFull = errors.New("membership: no room for another candidate")
	// ErrTimeout: no view with the candidate was installed in time. It may try
	// again, also at another member.
	ErrTimeout = errors.New("membership: the candidate could not be let in in time")
)

// Join asks for a view that includes c. The rank of c is ignored: the coordinator
// assigns one. The result comes from [Machine.Answers], with the token. A candidate
// that asks twice joins once.
func (m *Machine) Join(now protocol.Time, token uint64, c Member) {
	m.now = now
	c.Rank = protocol.NoRank
	if err := m.refusal(&c); err != nil {
		m.answers = append(m.answers, Answer{Token: token, Err: err})
		return
	}
	m.pending = append(m.pending, pending{token, c, now + m.config.JoinTimeout})
	if m.reporter.due == protocol.Never {
		m.reporter.changed()
	} else { // the reporter repeats the other requests of a herd anyway
		m.put(m.reporter.to, frame{kind: JoinRequest, candidate: c})
	}
	m.answerJoins()
	m.consider(now)
}

// Answers returns the next answer to a candidate, or false if there is none.
func (m *Machine) Answers() (Answer, bool) {
	if len(m.answers) == 0 {
		return Answer{}, false
	}
	a := m.answers[0]
	m.answers = m.answers[1:]
	return a, true
}

// refusal returns why a candidate cannot join, whatever the other members know.
func (m *Machine) refusal(c *Member) error {
	if m.done != nil {
		return m.done
	}
	if err := c.check(); err != nil {
		return err
	}
	known, stale := Member{}, false
	if i, ok := m.named(c.Identity); ok {
		known = m.view.Members[i]
		stale = known.Incarnation > c.Incarnation
	} else if i := m.view.formerly(c.Identity); i >= 0 {
		known = m.view.Former[i]
		stale = known.Incarnation >= c.Incarnation
	}
	switch {
	case stale:
		return fmt.Errorf("%w: %q comes as %d, rank %d was %d", ErrStale, c.Identity, c.Incarnation, known.Rank, known.Incarnation)
	case len(m.view.Members) == MaxSlots:
		return fmt.Errorf("%w: view %d has %d members", ErrFull, m.view.Number, MaxSlots)
	case len(m.pending) == maxPending:
		return fmt.Errorf("%w: %d wait already at rank %d", ErrFull, maxPending, m.config.Self.Rank)
	}
	return nil
}

// formerly returns the index in Former of an identity, or −1.
func (v *View) formerly(identity string) int {
	return slices.IndexFunc(v.Former, func(m Member) bool { return m.Identity == identity })
}

// answerJoins answers the candidates that are in the view, and those that can no
// longer join.
func (m *Machine) answerJoins() {
	m.pending = slices.DeleteFunc(m.pending, func(p pending) bool {
		a := Answer{Token: p.token, Err: m.refusal(&p.candidate)}
		if errors.Is(a.Err, ErrFull) {
			return false // there may be room later
		}
		if a.Err == nil {
			i, ok := m.named(p.candidate.Identity)
			if !ok || m.view.Members[i].Incarnation != p.candidate.Incarnation {
				return false
			}
			a.View, a.Rank, a.Cut = m.view, m.view.Members[i].Rank, m.cut
		}
		m.answers = append(m.answers, a)
		return true
	})
}

// expireJoins refuses the candidates that have waited for too long.
func (m *Machine) expireJoins(now protocol.Time) {
	m.pending = slices.DeleteFunc(m.pending, func(p pending) bool {
		if p.until > now {
			return false
		}
		m.answers = append(m.answers, Answer{Token: p.token, Err: fmt.Errorf("%w: at rank %d in view %d", ErrTimeout, m.config.Self.Rank, m.view.Number)})
		return true
	})
}

// handleJoinRequest adds or renews a candidate.
func (m *Machine) handleJoinRequest(now protocol.Time, c Member) error {
	c.Rank = protocol.NoRank
	if err := c.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	if i, ok := m.named(c.Identity); ok && m.view.Members[i].Incarnation >= c.Incarnation {
		return nil // it is a member, or a newer incarnation of it is
	}
	if i := m.view.formerly(c.Identity); i >= 0 && m.view.Former[i].Incarnation >= c.Incarnation {
		return nil
	}
	until := now + leaseFactor*m.config.RetryInterval
	for i := range m.candidates {
		if o := &m.candidates[i]; o.Identity == c.Identity {
			if o.Incarnation <= c.Incarnation {
				*o = candidate{c, until}
			}
			return nil
		}
	}
	if len(m.candidates) < maxCandidates && len(m.view.Members) < MaxSlots {
		m.candidates = append(m.candidates, candidate{c, until})
		m.window.note(now)
	}
	return nil
}

// forgetCandidates drops the candidates whose requests were not repeated.
func (m *Machine) forgetCandidates(now protocol.Time) {
	m.candidates = slices.DeleteFunc(m.candidates, func(c candidate) bool { return c.until <= now })
	if len(m.candidates)+len(m.leavers) == 0 {
		m.window = window{}
	}
}

// handleOwnRequests makes the coordinator handle its own requests as if another
// member had sent them.
func (m *Machine) handleOwnRequests(now protocol.Time) {
	for _, p := range m.pending {
		_ = m.handleJoinRequest(now, p.candidate) // checked by Join
	}
	if m.leaving {
		m.handleLeave(now, m.config.Self.Rank, m.config.Self.Incarnation)
	}
}
