package membership

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// invariant returns what is wrong with a machine after an event: whatever happens, its parts
// agree with each other.
func (m *Machine) invariant() error {
	if m.done != nil {
		if m.proposer != nil || len(m.pending) > 0 {
			return errors.New("it has stopped, and goes on")
		}
		return nil
	}
	return errors.Join(m.invariantOfView(), m.invariantOfBallots(), m.invariantOfSuspicions(), m.invariantOfRequests())
}

func (m *Machine) invariantOfView() error {
	if e := m.view.electorate(); e.count == 0 || !slices.Equal(e.voters, m.electorate.voters) ||
		e.count != m.electorate.count || e.lowest != m.electorate.lowest {
		return fmt.Errorf("%v has %+v, and it knows %+v", &m.view, e, m.electorate)
	}
	if i, _ := m.view.index(m.lowest(m.excluded())); !m.electorate.has(i) {
		return fmt.Errorf("the observer at index %d coordinates", i)
	}
	if i, ok := m.view.index(m.config.Self.Rank); !ok || i != m.self {
		return fmt.Errorf("it is at index %d of its view, not %d", i, m.self)
	}
	for i, member := range m.view.Members.All() {
		if r, ok := m.names[member.Identity]; m.names != nil && (!ok || r != member.Rank) {
			return fmt.Errorf("%q has rank %d, not %d (%t) at index %d", member.Identity, member.Rank, r, ok, i)
		}
	}
	if m.names != nil && len(m.names) != m.view.Members.Len() {
		return fmt.Errorf("%d names of %d members", len(m.names), m.view.Members.Len())
	}
	last := m.view.Number
	if m.acceptor.decided != nil {
		last++
	}
	for i, v := range slices.Backward(m.history) {
		if want := last - uint64(len(m.history)-1-i); v.number != want {
			return fmt.Errorf("decision %d is about view %d, not %d", i, v.number, want)
		}
	}
	if len(m.history) > keptCommits {
		return fmt.Errorf("%d decisions are kept", len(m.history))
	}
	return nil
}

func (m *Machine) invariantOfBallots() error {
	r := &m.acceptor
	switch p := r.current; {
	case r.promised.less(r.accepted) || r.promised.less(r.proposed):
		return fmt.Errorf("promised %v, accepted %v, proposed %v", r.promised, r.accepted, r.proposed)
	case (r.value != nil) != (r.accepted != Ballot{}):
		return fmt.Errorf("accepted %v without a value, or a value without it", r.accepted)
	case r.frozen && len(r.holds) == 0 && r.decided == nil, !r.frozen && len(r.holds) > 0:
		return fmt.Errorf("frozen %t, for %v", r.frozen, r.holds)
	case m.proposer != nil && (p == nil || p.ballot != m.proposer.ballot || r.promised != p.ballot):
		return fmt.Errorf("it attempts %v, and has promised %v", m.proposer.ballot, r.promised)
	case p != nil && (!p.members.has(m.self) || !p.members.covers(p.acked) || !p.members.covers(p.subtree)):
		return fmt.Errorf("ballot %v: %v of %v have acknowledged", p.ballot, p.acked.each(), p.members.each())
	case p != nil && m.proposer == nil && p.ballot.Rank == m.config.Self.Rank && p.proposal == nil && r.decided == nil:
		return fmt.Errorf("its ballot %v is abandoned, and not canceled", p.ballot)
	case r.decided != nil && (m.proposer != nil || r.next == nil):
		return errors.New("it goes on after the decision")
	}
	held := map[protocol.Rank]int{}
	for _, b := range r.holds {
		held[b.Rank]++
		if held[b.Rank] > 2 || r.promised.less(b) {
			return fmt.Errorf("it holds %v, and has promised %v", r.holds, r.promised)
		}
	}
	return nil
}

func (m *Machine) invariantOfSuspicions() error {
	s := &m.suspicions
	for i, x := range s.own {
		if x.rank == m.config.Self.Rank || !m.view.Has(x.rank) || i > 0 && s.own[i-1].rank >= x.rank {
			return fmt.Errorf("it suspects %v", s.own)
		}
	}
	for name, list := range map[string]set{
		"silent": m.live[silent], "awaited": m.live[awaited],
		"unheard": m.live[unheard], "abstains": m.live[abstaining], "asked": m.live[asked],
	} {
		if list.has(m.self) || list != nil && !list.fits(m.view.Members.Len()) {
			return fmt.Errorf("it is %s itself, or one of another view is", name)
		}
	}
	if marked := s.marked; marked != nil {
		m.markSuspects()
		again := s.marked
		s.marked = marked
		if !slices.Equal(again, marked) {
			return fmt.Errorf("suspected are %v, not %v", again.each(), marked.each())
		}
		if marked.has(m.self) {
			return errors.New("it suspects itself")
		}
	}
	return nil
}

func (m *Machine) invariantOfRequests() error {
	names := map[string]bool{}
	for i := range m.candidates {
		if c := &m.candidates[i]; names[c.Identity] || c.check() != nil || m.view.admitted(&c.Member) >= 0 {
			return fmt.Errorf("candidate %q is there twice, makes no sense, or is a member", c.Identity)
		}
		names[m.candidates[i].Identity] = true
	}
	if m.hasRequests() && !m.window.open && m.lowest(m.excluded()) == m.config.Self.Rank && m.acceptor.decided == nil {
		return errors.New("it has requests, and does not collect them")
	}
	for i := range m.pending {
		if c := &m.pending[i].candidate; m.view.admitted(&c.Member) >= 0 {
			return fmt.Errorf("%q waits, and is a member", c.Identity)
		}
	}
	for _, l := range m.leavers {
		if !m.view.Holds(l.rank, l.incarnation) {
			return fmt.Errorf("%v wants to leave, and is no member", l)
		}
	}
	for _, q := range m.metas {
		if of := m.view.Members.Find(q.rank); of == nil || of.Incarnation != q.incarnation ||
			of.attributes() == q.attributes {
			return fmt.Errorf("rank %d wants what it has, or is no member", q.rank)
		}
	}
	if e := &m.reporter; e.due != protocol.Never && (e.to == m.config.Self.Rank || !m.view.Has(e.to)) {
		return fmt.Errorf("it reports to %d", e.to)
	}
	return nil
}

// checkInvariants judges a machine, after one of many events.
func (n *network) checkInvariants(h *host) {
	n.judged++
	if n.judged%8 == 0 {
		if err := h.m.invariant(); err != nil {
			n.fail(fmt.Errorf("%s: %w", who(h.self), err))
		}
	}
	if n.judged%32 == 0 && h.m.done == nil {
		n.checkDeadline(h)
	}
}

// checkDeadline looks at a copy of a machine just before its deadline. It has nothing to do then,
// unless what others have told it has ended meanwhile, which it sees when it is called for
// another reason.
func (n *network) checkDeadline(h *host) {
	m := deepCopy(h.m)
	until := min(m.Deadline(), m.reporter.heard+m.config.answerTimeout())
	for _, r := range m.suspicions.reported {
		until = min(until, r.until)
	}
	for _, c := range m.candidates {
		until = min(until, c.until)
	}
	for _, q := range m.metas {
		until = min(until, q.until)
	}
	until--
	if until <= n.now || until == protocol.Never-1 {
		return
	}
	if to, b, ok := m.Next(until); ok {
		n.fail(fmt.Errorf("%s: at %d, before its deadline, it sends rank %d a %v", who(h.self), until, to, Kind(b[0])))
	}
	if m.unsaved() || m.done != nil {
		n.fail(fmt.Errorf("%s: at %d, before its deadline, it begins an attempt, or ends", who(h.self), until))
	}
}
