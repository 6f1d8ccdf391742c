package membership

// An identity belongs to one process at a time. When a process asks to join with the
// identity of a member, the member that has the request finds out whether that one,
// the holder, is alive. A live holder keeps its identity: two processes with one
// identity would otherwise replace each other again and again.

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// InUseError refuses a candidate: a live member has its identity.
type InUseError struct {
	Holder Member
	// View is the number of the view that has the holder.
	View uint64
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("membership: identity %q is in use by rank %d at %s, a member since view %d, in view %d",
		e.Holder.Identity, e.Holder.Rank, e.Holder.Address, e.Holder.Incarnation, e.View)
}

// probe is the question to a holder whether it is alive.
type probe struct {
	view   uint64 // in which the holder has the identity; 0: it is free
	holder protocol.Rank
	asked  bool          // it is pinged
	due    protocol.Time // of the next ping
	until  protocol.Time // the holder is gone if it has not answered by then
}

// next returns when the probe has something to do.
func (p *pending) next() protocol.Time {
	if p.ready || !p.probe.asked {
		return protocol.Never
	}
	return min(p.probe.due, p.probe.until)
}

// runProbes finds out for each candidate that waits here whether its identity is free.
func (m *Machine) runProbes(now protocol.Time) {
	m.pending = slices.DeleteFunc(m.pending, func(p pending) bool { return m.refusedByHolder(&p) })
	for i := range m.pending {
		m.runProbe(now, &m.pending[i])
	}
}

// refusedByHolder refuses a candidate whose identity this member itself has.
func (m *Machine) refusedByHolder(p *pending) bool {
	i, taken := m.named(p.candidate.Identity)
	if !taken || i != m.self || p.replace {
		return false
	}
	m.answers = append(m.answers, Answer{Token: p.token, Err: &InUseError{*m.view.Members.At(i), m.view.Number}})
	return true
}

// runProbe decides whether a candidate may ask the coordinator, and asks the member
// that has its identity whether it is alive. A member is gone if the candidate has its
// address: one socket listens there.
func (m *Machine) runProbe(now protocol.Time, p *pending) {
	i, taken := m.named(p.candidate.Identity)
	if !taken {
		p.probe = probe{}
		m.forward(p, false)
		return
	}
	h := m.view.Members.At(i)
	if p.probe.view != m.view.Number { // all members of a new view were alive just now
		p.probe, p.ready = probe{view: m.view.Number, holder: h.Rank, due: now, until: now + m.config.ProbeTimeout}, false
	}
	switch r := &p.probe; {
	case p.ready:
	case i == m.self:
		m.forward(p, false)
	case h.Address == p.candidate.Address || now >= r.until || m.suspected().has(i):
		m.forward(p, true)
	case now >= r.due:
		r.asked, r.due = true, now+m.config.RetryInterval
		m.put(h.Rank, frame{kind: Ping})
	}
}

// forward lets a candidate ask the coordinator: its identity is free, its holder is
// gone, or the candidate replaces it although it is alive.
func (m *Machine) forward(p *pending, gone bool) {
	if p.ready {
		return
	}
	p.ready, p.candidate.gone = true, gone
	if m.reporter.due != protocol.Never { // the reporter repeats the other requests of a herd anyway
		m.put(m.reporter.to, frame{kind: JoinRequest, candidate: p.candidate})
	}
}

// holderAnswered ends the probes of a holder: it is alive.
func (m *Machine) holderAnswered(by protocol.Rank) {
	m.pending = slices.DeleteFunc(m.pending, func(p pending) bool {
		if p.ready || p.replace || !p.probe.asked || p.probe.holder != by {
			return false
		}
		h, _ := m.view.Member(by)
		m.answers = append(m.answers, Answer{Token: p.token, Err: &InUseError{h, m.view.Number}})
		return true
	})
	for i := range m.pending {
		if p := &m.pending[i]; p.probe.asked && p.probe.holder == by {
			m.forward(p, false)
		}
	}
}

// holderShown takes a sign of life of a member. Candidates that have passed because it
// was gone ask it again: it was only cut off, and is needed for the next view.
func (m *Machine) holderShown(by protocol.Rank) {
	h, _ := m.view.Member(by)
	passed := func(c *candidate) bool { return c.gone && c.Identity == h.Identity }
	m.candidates = slices.DeleteFunc(m.candidates, func(c candidate) bool { return passed(&c) })
	for i := range m.pending {
		if p := &m.pending[i]; passed(&p.candidate) {
			p.ready, p.candidate.gone, p.probe = false, false, probe{}
		}
	}
}

// markGone adds the holder of a candidate's identity to a set if it is gone.
func (m *Machine) markGone(s set, c *candidate) {
	if i, taken := m.named(c.Identity); c.gone && taken && i != m.self {
		s.add(i)
	}
}

// givesWay returns the live member whose place a candidate takes, if there is one. A
// member that takes part in a change is not gone, whatever another one has found.
func (m *Machine) givesWay(c *candidate) (i int, ok bool) {
	i, taken := m.named(c.Identity)
	return i, taken && !c.gone
}
