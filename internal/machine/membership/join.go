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
	candidate candidate
	replace   bool // it takes the place of a live process with its identity
	ready     bool // the coordinator is to be asked; otherwise probe finds out first
	probe     probe
	until     protocol.Time
}

// candidate is a process that asks to join. At the coordinator it waits for a view
// that includes it. The member that has its request repeats it; when that ends, the
// coordinator forgets the candidate.
type candidate struct {
	Member
	gone  bool // the member with its identity is gone
	until protocol.Time
}

// Answer is the result of a [Machine.Join].
type Answer struct {
	Token uint64
	// View holds the candidate, at Rank. Cut is where the view began in the streams
	// of its roots. Decisions has led to it. They are for the joiner's Config and Log.
	View      View
	Rank      protocol.Rank
	Cut       []Position
	Decisions Decisions
	// Err, if not nil, is why the candidate is refused.
	Err error
}

// Reasons to refuse a candidate; see also [InUseError].
var (
	// ErrFull: no slots are left, or too many candidates wait already.
	ErrFull = errors.New("membership: no room for another candidate")
	// ErrTimeout: no view with the candidate was installed in time. It may try
	// again, also at another member.
	ErrTimeout = errors.New("membership: the candidate could not be let in in time")
	// ErrSuperseded: another process at the same address has asked later.
	ErrSuperseded = errors.New("membership: a later process at this address asks to join")
)

// Join asks for a view that includes c. The rank and the incarnation of c are ignored:
// the group assigns them. The result comes from [Machine.Answers], with the token. A
// candidate that asks twice, with the same nonce, joins once.
//
// If a member has the identity of c, it is asked whether it is alive. If it is, c is
// refused with an [InUseError], unless replace is set; if it is gone, c replaces it.
func (m *Machine) Join(now protocol.Time, token uint64, c Member, replace bool) {
	m.now = now
	c.Rank, c.Incarnation, c.Synced = protocol.NoRank, 0, false
	if err := m.refusal(&c); err != nil {
		m.answers = append(m.answers, Answer{Token: token, Err: err})
		return
	}
	m.supersede(&c)
	m.pending = append(m.pending, pending{
		token: token, candidate: candidate{Member: c}, replace: replace, until: now + m.config.JoinTimeout,
	})
	m.answerJoins()
}

// supersede refuses the candidates that have waited with the identity and the address
// of c: one socket listens there, so their processes have ended.
func (m *Machine) supersede(c *Member) {
	m.pending = slices.DeleteFunc(m.pending, func(p pending) bool {
		o := &p.candidate
		if o.Identity != c.Identity || o.Address != c.Address || o.Nonce == c.Nonce {
			return false
		}
		m.answers = append(m.answers,
			Answer{Token: p.token, Err: fmt.Errorf("%w: %q at %s", ErrSuperseded, c.Identity, c.Address)})
		return true
	})
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
	switch {
	case c.Version < m.view.Version || c.Version > m.view.Version+1: // a process speaks two neighboring ones
		return &VersionError{m.view.Version, *c}
	case m.view.admitted(c) < 0 && m.observerRefusal(c, c.Observer) != nil:
		return m.observerRefusal(c, c.Observer)
	case c.Nonce == 0:
		return fmt.Errorf("%w: candidate %q has no nonce", ErrView, c.Identity)
	case m.view.Members.Len() == MaxSlots:
		return fmt.Errorf("%w: view %d has %d members", ErrFull, m.view.Number, MaxSlots)
	case len(m.pending) == maxPending:
		return fmt.Errorf("%w: %d wait already at rank %d", ErrFull, maxPending, m.config.Self.Rank)
	}
	return nil
}

// answerJoins answers the candidates that are in the view, and those that can no
// longer join.
func (m *Machine) answerJoins() {
	m.pending = slices.DeleteFunc(m.pending, func(p pending) bool {
		a := Answer{Token: p.token}
		if i, ok := m.named(p.candidate.Identity); ok && m.view.Members.At(i).Nonce == p.candidate.Nonce {
			a.View, a.Rank, a.Cut, a.Decisions = m.view, m.view.Members.At(i).Rank, m.cut, m.Decisions()
		} else {
			a.Err = m.refusal(&p.candidate.Member)
			if a.Err == nil || errors.Is(a.Err, ErrFull) {
				return false // there may be room later
			}
		}
		m.answers = append(m.answers, a)
		return true
	})
}

// hasAdmitted reports whether a candidate that waits here is in a view. Then a member
// that is not in it installs it first: the candidate needs the answer, and maybe no
// other member can give it.
func (m *Machine) hasAdmitted(next *View) bool {
	return slices.ContainsFunc(m.pending, func(p pending) bool { return next.admitted(&p.candidate.Member) >= 0 })
}

// answerAdmitted answers the candidates that are in a view.
func (m *Machine) answerAdmitted(next *View, cut []Position) {
	m.pending = slices.DeleteFunc(m.pending, func(p pending) bool {
		i := next.admitted(&p.candidate.Member)
		if i >= 0 {
			m.answers = append(m.answers, Answer{
				Token: p.token, View: *next, Rank: next.Members.At(i).Rank, Cut: cut,
				Decisions: m.DecisionsUpTo(next.Number),
			})
		}
		return i >= 0
	})
}

// admitted returns the index of a candidate in the view, or −1.
func (v *View) admitted(c *Member) int {
	if i, ok := v.named(c.Identity); ok && v.Members.At(i).Nonce == c.Nonce {
		return i
	}
	return -1
}

// expireJoins refuses the candidates that have waited for too long.
func (m *Machine) expireJoins(now protocol.Time) {
	m.pending = slices.DeleteFunc(m.pending, func(p pending) bool {
		if p.until > now {
			return false
		}
		m.answers = append(m.answers,
			Answer{Token: p.token, Err: fmt.Errorf("%w: at rank %d in view %d", ErrTimeout, m.config.Self.Rank, m.view.Number)})
		return true
	})
}

// handleJoinRequest adds or renews a candidate. Of two candidates with one identity,
// the coordinator keeps the first, unless the second has its address.
func (m *Machine) handleJoinRequest(now protocol.Time, c candidate) error {
	c.Rank, c.Incarnation = protocol.NoRank, 0
	if err := c.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	if i, ok := m.named(c.Identity); ok && m.view.Members.At(i).Nonce == c.Nonce {
		return nil // it is a member
	}
	if m.observerRefusal(&c.Member, c.Observer) != nil {
		return nil // the member that it has asked finds out
	}
	c.until = now + m.lease()
	for i := range m.candidates {
		if o := &m.candidates[i]; o.Identity == c.Identity {
			if o.Nonce == c.Nonce || o.Address == c.Address {
				*o = c
			}
			return nil
		}
	}
	if len(m.candidates) < maxCandidates && m.view.Members.Len() < MaxSlots {
		m.candidates = append(m.candidates, c)
		m.window.note(now)
	}
	return nil
}

// forgetCandidates drops the candidates, the changes of meta and the version whose requests
// were not repeated.
func (m *Machine) forgetCandidates(now protocol.Time) {
	m.candidates = slices.DeleteFunc(m.candidates, func(c candidate) bool { return c.until <= now })
	m.metas = slices.DeleteFunc(m.metas, func(q metaRequest) bool { return q.until <= now })
	if m.raise.until <= now {
		m.raise.version = 0
	}
	if !m.hasRequests() {
		m.window = window{}
	}
}

// hasRequests reports whether members have asked the coordinator for a change.
func (m *Machine) hasRequests() bool {
	return max(len(m.candidates), len(m.leavers), len(m.metas), int(m.raise.version)) > 0
}

// handleOwnRequests makes the coordinator handle its own requests as if another
// member had sent them.
func (m *Machine) handleOwnRequests(now protocol.Time) {
	for i := range m.pending {
		if p := &m.pending[i]; p.ready {
			_ = m.handleJoinRequest(now, p.candidate) // checked by Join
		}
	}
	if m.changesMeta() {
		m.handleMetaChange(now, m.config.Self.Rank, m.config.Self.Incarnation, m.wanted)
	}
	if m.raises() {
		m.handleRaise(now, m.raise.wanted)
	}
	if m.leaving {
		m.handleLeave(now, m.config.Self.Rank, m.config.Self.Incarnation)
	}
}

// joinsReady reports whether candidates wait for the coordinator.
func (m *Machine) joinsReady() bool {
	return slices.ContainsFunc(m.pending, func(p pending) bool { return p.ready })
}
