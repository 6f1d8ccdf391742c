package membership

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// handleCommit handles a decision. A commit that comes by the tree or by correction
// is also handed to the broadcast, which passes it on and corrects it.
func (m *Machine) handleCommit(now protocol.Time, f *frame) error {
	known := m.view.Number
	if m.acceptor.decided != nil {
		known++
	}
	switch {
	case f.value.number > known+1:
		m.catchUp(now, f.from)
		return nil
	case f.value.number == known+1:
		if m.acceptor.decided != nil {
			return m.keepLater(f)
		}
		if _, err := m.apply(f.value); err != nil {
			return fmt.Errorf("%w: %w", ErrFrame, err)
		}
		m.decide(now, f.value, f.root)
	}
	m.handleCommitCast(now, f)
	return nil
}

// keepLater keeps the commit after the decided one: views are installed one at a time. If
// it removes this member, there is nothing to wait for. The others may have removed it
// because no live member has the messages that it waits for.
func (m *Machine) keepLater(f *frame) error {
	after, err := f.value.apply(m.acceptor.next, m.acceptor.next.named)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	m.later = f
	if !m.leaving && !after.Holds(m.config.Self.Rank, m.config.Self.Incarnation) && !m.hasAdmitted(after) {
		m.end(m.evicted(m.acceptor.next, f.value, after))
	}
	return nil
}

// decide records that a value is decided. The root broadcasts it; it is NoRank if
// this member is a straggler.
func (m *Machine) decide(now protocol.Time, v *value, root protocol.Rank) {
	next, _ := m.apply(v) // as when it was received
	r := &m.acceptor
	r.decided, r.next, r.own, m.proposer = v, next, root == m.config.Self.Rank, nil
	m.history = append(m.history, v)
	if len(m.history) > keptCommits {
		m.history = slices.Clone(m.history[1:])
	}
	m.beginCommitCast(now, v, root)
	if !next.Holds(m.config.Self.Rank, m.config.Self.Incarnation) && !m.leaving && !m.hasAdmitted(next) {
		r.ends = m.evicted(&m.view, v, next)
		if !r.own || !m.unsaved() {
			m.end(r.ends)
		}
		return // the others need the decision, which leaves when the vote is saved
	}
	if !r.frozen {
		m.freeze(now) // a leaving member that has not participated
	}
	m.config.Log.Flush(v.cut)
	m.tryInstall(now)
}

// tryInstall installs the decided view once everything up to its cut is here.
func (m *Machine) tryInstall(now protocol.Time) {
	r := m.acceptor
	if m.done != nil || r.decided == nil || !m.config.Log.Flushed() || r.own && m.unsaved() {
		return
	}
	m.config.Log.Install(r.next)
	if !r.next.Holds(m.config.Self.Rank, m.config.Self.Incarnation) {
		m.answerAdmitted(r.next, r.decided.cut)
		if m.leaving {
			m.end(ErrLeft)
		} else {
			m.end(m.evicted(&m.view, r.decided, r.next))
		}
		return
	}
	m.suspicions.prune(&m.view, r.next)
	stay := r.decided.removed.complement(m.view.Members.Len())
	minority := !m.electorate.majority(stay) // those that stay could not decide this view again
	m.cut, m.acceptor = r.decided.cut, acceptor{}
	m.enter(r.next)
	m.durable.changed, m.durable.reserved = true, Ballot{}
	m.durable.sync = m.durable.sync || minority
	m.stats.Changes++
	if r.began > 0 {
		m.stats.Took = now - r.began
	}
	m.pause, m.attemptTimeout, m.seen = 0, m.config.firstAttemptTimeout(m.view.Members.Len()), 0
	m.pace.forget()
	m.reporter.changed()
	m.status.due = now + m.config.StatusInterval
	m.pruneRequests(now)
	m.answerJoins()
	if f := m.later; f != nil {
		m.later = nil
		_ = m.handleCommit(now, f) // an invalid commit is dropped
	}
}

// pruneRequests forgets the joins, leaves, changes of meta and the version that the view has
// fulfilled, and opens the window again for the others.
func (m *Machine) pruneRequests(now protocol.Time) {
	m.candidates = slices.DeleteFunc(m.candidates, func(c candidate) bool {
		_, taken := m.named(c.Identity) // by this candidate, or the member it has asked finds out
		return m.view.Members.Len() == MaxSlots || taken || c.Version < m.view.Version ||
			m.observerRefusal(&c.Member, c.Observer) != nil
	})
	m.leavers = slices.DeleteFunc(m.leavers, func(s suspect) bool {
		i, _ := m.view.index(s.rank)
		return !m.view.Holds(s.rank, s.incarnation) || m.electorate.last(i)
	})
	m.pruneMetas()
	m.pruneRaise()
	m.window = window{}
	if m.hasRequests() {
		m.window.note(now)
	}
}

// end stops this member, and refuses the candidates that wait for its answer.
func (m *Machine) end(why error) {
	m.done, m.proposer = why, nil
	for _, p := range m.pending {
		m.answers = append(m.answers, Answer{Token: p.token, Err: fmt.Errorf("at rank %d: %w", m.config.Self.Rank, why)})
	}
	m.pending = nil
}

// sendMissed sends a straggler the decisions that it misses. A sender that is not
// in the view, or further behind than the history reaches, learns that it is
// removed.
func (m *Machine) sendMissed(f *frame) {
	if len(m.history) == 0 || f.view+1 < m.history[0].number {
		if !m.view.Holds(f.from, f.incarnation) || m.view.Number-f.view >= keptCommits {
			m.put(f.from, frame{kind: Removed})
		}
		return
	}
	for _, v := range m.history[f.view+1-m.history[0].number:] {
		m.put(f.from, frame{kind: Commit, route: toStraggler, root: protocol.NoRank, value: v})
	}
}

// handleRemoved ends this member: the group has removed it, or is too far ahead.
func (m *Machine) handleRemoved(f *frame) {
	if f.view > m.view.Number {
		m.end(&EvictedError{Rank: m.config.Self.Rank, View: m.view.Number, By: f.view})
	}
}

// Removed says that a member of a later view does not let this member connect:
// another process has its rank in that view, or none has. A view that is not later is
// that of another side of a split, and decides nothing here.
func (m *Machine) Removed(now protocol.Time, view uint64, holder *Member) {
	m.now = now
	if m.done != nil || view <= m.view.Number {
		return
	}
	if m.leaving {
		m.end(ErrLeft)
		return
	}
	if holder != nil && holder.Identity != m.config.Self.Identity {
		holder = nil // the rank went to another process
	}
	m.end(&EvictedError{Rank: m.config.Self.Rank, View: m.view.Number, By: view, Successor: holder})
}

// evicted returns why this member ends with a decision that removes it.
func (m *Machine) evicted(before *View, v *value, next *View) *EvictedError {
	e := &EvictedError{
		Rank: m.config.Self.Rank, View: m.view.Number, By: next.Number,
		Successor: next.Successor(&m.config.Self),
	}
	self, _ := before.index(m.config.Self.Rank)
	if k := slices.Index(v.removed.each(), self); k >= 0 && v.reason(k).cause.evicts() {
		e.Cause = v.reason(k).cause
	}
	return e
}

// Successor returns the member with the identity of a process that is not in the view
// itself, or nil if there is none.
func (v *View) Successor(of *Member) *Member {
	if i, ok := v.named(of.Identity); ok {
		if m := v.Members.At(i); m.Incarnation != of.Incarnation || m.Rank != of.Rank {
			return m
		}
	}
	return nil
}

// catchUp asks a member that is ahead for the decisions that are missing here.
func (m *Machine) catchUp(now protocol.Time, from protocol.Rank) {
	if now >= m.status.asked {
		m.status.asked = now + m.config.RetryInterval
		m.put(from, frame{kind: Status})
	}
}
