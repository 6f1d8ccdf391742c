package engine

import (
	"context"
	"fmt"
	"math"
)

// Agree and Shrink use fault-tolerant agreement, as MPIX_Comm_agree of ULFM does
// (Herault et al. 2015).
//
// The input of a process that dies cannot be restored, so a task's part cannot be run
// again. The processes agree as on views: the leader, the lowest rank of the view, gets
// every process's vote, has all accept one proposal, and commits it once all have. In
// the next view all vote again, with what they have accepted. A committed proposal was
// accepted by all of a view, so the leader of a later one, whose members are among them,
// finds it. An accept of an earlier view is ignored. A proposal that a survivor has
// accepted is never replaced, because the next leader gets that survivor's vote.
//
// Agreements have numbers of their own, because after a failure processes may have made
// different calls. They run one after the other, so a process that has begun one knows
// that all have begun the one before, and need the one before that no more.

// agreements are those of a communicator.
type agreements struct {
	byNumber map[uint64]*agreement
	begun    uint64
	turn     chan struct{} // semaphore of the one that runs
}

func (a *agreements) init() {
	a.byNumber = make(map[uint64]*agreement)
	a.turn = make(chan struct{}, 1)
}

// at returns the agreement of a number.
func (a *agreements) at(number uint64) *agreement {
	g := a.byNumber[number]
	if g == nil {
		g = &agreement{number: number, firstFrom: -1}
		a.byNumber[number] = g
	}
	return g
}

// agreement is what a process knows of one agreement.
type agreement struct {
	number uint64
	call   *callState // nil: this process has not come to it yet
	// firstFrom is the rank whose message arrived first, and firstSig what it called.
	firstFrom int
	firstSig  Signature
	aborted   error // another process has given it up before this one came to it

	vote    // this process's
	decided bool
	subComm *Engine // that Shrink has derived

	// Of the leader: votes by rank, and the ranks that have accepted the proposal.
	votes      map[int]vote
	acceptedBy map[int]bool
}

// vote is what a process wants or has accepted, in a view.
type vote struct {
	view     uint32
	accepted bool
	proposal proposal
}

// proposal is the value to agree on: the bits that all have set, the view up to which
// all have acknowledged failures, and the view in which it was proposed.
type proposal struct{ value, acked, view uint64 }

// unnumbered, as a call number, means nothing to other processes.
const unnumbered = math.MaxUint64

// Agree agrees on the bits that are set in every process's value. In mode Report it also
// returns a [*FailedError] for failures that not all had acknowledged.
func (c Comm) Agree(ctx context.Context, s Signature, value uint64) (uint64, error) {
	var agreed proposal
	var call uint64
	err := c.Do(ctx, s, func(t *Task) (err error) {
		if t.Own() {
			call = t.call.number
			agreed, _, err = t.agree(value)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if s.Mode == Report {
		e := c.engine
		e.mu.Lock()
		defer e.mu.Unlock()
		if failed := e.peers.failedBetween(agreed.acked, agreed.view); len(failed) > 0 {
			err = &FailedError{Ranks: failed, View: agreed.view, Call: call, What: s.String()}
		}
	}
	return agreed.value, err
}

// agree votes and waits until a proposal is decided. It returns the proposal, and the
// communicator that Shrink derives.
func (t *Task) agree(value uint64) (proposal, *Engine, error) {
	e, o := t.engine, t.call
	select {
	case e.agreements.turn <- struct{}{}:
		defer func() { <-e.agreements.turn }()
	case <-t.ctx.Done():
		return proposal{}, nil, t.ctx.Err()
	case <-o.ctx.Done(): // o.err is set
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.err != nil {
		return proposal{}, nil, o.err
	}
	a := e.beginAgreement(o, value)
	for !a.decided && o.err == nil {
		changed := o.changed.Wait()
		e.mu.Unlock()
		select {
		case <-changed:
		case <-t.ctx.Done():
		}
		e.mu.Lock()
		if err := t.ctx.Err(); err != nil && !a.decided {
			return proposal{}, nil, err
		}
	}
	if a.decided {
		return a.proposal, a.subComm, nil
	}
	return proposal{}, nil, o.err
}

// beginAgreement takes the next number, and votes.
func (e *Engine) beginAgreement(o *callState, value uint64) *agreement {
	all := &e.agreements
	a := all.at(all.begun)
	delete(all.byNumber, all.begun-2)
	all.begun++
	a.call, o.agreement = o, a
	a.proposal = proposal{value: value, acked: e.peers.acked}
	switch {
	case a.aborted != nil:
		e.fail(o, a.aborted, false)
	case a.firstFrom >= 0 && a.firstSig != o.local.signature:
		e.fail(o, e.mismatchError(o, a.firstFrom, a.firstSig), true)
	}
	e.sendVote(a)
	return a
}

// voteAgain votes in a new view.
func (e *Engine) voteAgain() {
	begun := e.agreements.begun
	for n := begun - min(begun, 2); n < begun; n++ {
		if a := e.agreements.byNumber[n]; a != nil {
			e.sendVote(a)
		}
	}
}

// sendVote tells the leader what this process wants or has accepted, anew in every view.
// A process whose call has failed does not vote.
func (e *Engine) sendVote(a *agreement) {
	if a.call == nil || a.call.err != nil && !a.decided {
		return
	}
	a.acceptedBy = nil
	a.vote.view = uint32(e.peers.view)
	if e.peers.leader() == e.config.Rank {
		e.handleVote(a, e.config.Rank, a.vote)
		return
	}
	e.sendAgreement(a, e.peers.leader(), typeVote)
}

func (e *Engine) sendAgreement(a *agreement, to int, phase msgType) {
	m := agreementMessage{
		phase: phase, signature: a.call.local.signature, call: a.call.number,
		lowWater: e.log.lowWater, number: a.number, vote: a.vote,
	}
	m.vote.view = uint32(e.peers.view)
	if e.diverged {
		m.call = unnumbered
	}
	head, body := m.bytes()
	e.sender.enqueue(outMsg{to, head, body})
}

// handleAgreement handles one phase of an agreement.
func (e *Engine) handleAgreement(from int, h *header, body []byte) error {
	m, err := h.agreementMessage(body)
	if err != nil {
		return fmt.Errorf("%w: %w, about an agreement, from rank %d", ErrMessage, err, from)
	}
	a, err := e.agreementOf(from, &m)
	if a == nil {
		return err
	}
	inView := m.vote.view == uint32(e.peers.view) && a.call != nil
	switch {
	case m.phase == typeVote:
		e.handleVote(a, from, m.vote)
	case m.phase == typeCommit && a.call != nil:
		e.decide(a, m.vote.proposal)
	case m.phase == typeAccept && inView:
		a.proposal, a.accepted = m.vote.proposal, true
		e.deriveSubComm(a)
		e.sendAgreement(a, from, typeAccepted)
	case m.phase == typeAccepted && inView && a.acceptedBy != nil:
		e.handleAccepted(a, from)
	}
	return nil
}

// agreementOf returns the agreement that a message is about, or nil if it is over, or if
// the processes have called different things.
func (e *Engine) agreementOf(from int, m *agreementMessage) (*agreement, error) {
	begun := e.agreements.begun
	switch {
	case !m.signature.Kind.repairs() || m.number >= begun+uint64(e.config.KeepCalls):
		return nil, fmt.Errorf("%w: rank %d is at agreement %d, %v, this one at %d", ErrMessage, from, m.number, m.signature, begun)
	case m.number+2 < begun:
		return nil, nil
	}
	s := e.peers.of(from)
	s.heard, s.agreements = true, max(s.agreements, int(m.number)+1)
	a := e.agreements.at(m.number)
	if a.firstFrom < 0 {
		a.firstFrom, a.firstSig = from, m.signature
	}
	if a.call != nil && a.call.local.signature != m.signature {
		e.fail(a.call, e.mismatchError(a.call, from, m.signature), true)
		return nil, nil
	}
	if !e.inOrder(from, m) {
		return nil, nil
	}
	return a, nil
}

// inOrder reports whether a voter has come to its call as this process has, by the
// numbers of calls. They mean nothing once a call has ended with an error.
func (e *Engine) inOrder(from int, m *agreementMessage) bool {
	if m.phase != typeVote || m.call == unnumbered || e.diverged || !e.inReach(m.call) {
		return true
	}
	return e.matches(e.call(m.call), from, m.call, m.signature)
}

// inReach reports whether the engine may keep state for a call number.
func (e *Engine) inReach(call uint64) bool {
	return call >= e.log.lowWater && call < e.numberLimit()
}

// handleAgreementAbort handles that an Agree or a Shrink has failed elsewhere. This
// process's agreement of that number fails too, unless it is decided. So does its call of
// the same number, if the two did not match.
func (e *Engine) handleAgreementAbort(from int, h *header, body []byte) error {
	notice, err := h.abortNotice(from, body)
	if err != nil {
		return err
	}
	if _, ok := notice.err.(*MismatchError); ok && !e.diverged && e.inReach(notice.call) {
		e.fail(e.call(notice.call), notice.err, false)
	}
	number, begun := notice.agreement-1, e.agreements.begun // 0 wraps to a number out of reach
	if number+2 < begun || number >= begun+uint64(e.config.KeepCalls) {
		return nil
	}
	switch a := e.agreements.at(number); {
	case a.call == nil:
		a.aborted = notice.err
	case !a.decided:
		e.fail(a.call, notice.err, false)
	}
	return nil
}

// handleVote takes a vote. A vote of a view that is not installed here yet is kept.
func (e *Engine) handleVote(a *agreement, from int, v vote) {
	if a.votes == nil {
		a.votes = make(map[int]vote)
	}
	a.votes[from] = v
	if e.peers.leader() != e.config.Rank || a.acceptedBy != nil {
		return
	}
	for _, r := range e.peers.members() {
		if v, ok := a.votes[r]; !ok || v.view != uint32(e.peers.view) {
			return
		}
	}
	e.propose(a)
}

// propose proposes, when all have voted, what any has accepted, or else what all want.
func (e *Engine) propose(a *agreement) {
	for _, r := range e.peers.members() {
		v := a.votes[r]
		if a.accepted {
			break
		}
		a.proposal.value &= v.proposal.value
		a.proposal.acked = min(a.proposal.acked, v.proposal.acked)
		a.proposal.view = e.peers.view
		if v.accepted {
			a.proposal, a.accepted = v.proposal, true
		}
	}
	a.accepted, a.acceptedBy = true, make(map[int]bool)
	e.deriveSubComm(a)
	e.sendToOthers(a, typeAccept)
	e.handleAccepted(a, e.config.Rank)
}

// handleAccepted counts the ranks that have accepted the proposal. When all have, it is
// committed.
func (e *Engine) handleAccepted(a *agreement, from int) {
	a.acceptedBy[from] = true
	for _, r := range e.peers.members() {
		if !a.acceptedBy[r] {
			return
		}
	}
	e.sendToOthers(a, typeCommit)
	e.decide(a, a.proposal)
}

func (e *Engine) sendToOthers(a *agreement, phase msgType) {
	for _, r := range e.peers.members() {
		if r != e.config.Rank {
			e.sendAgreement(a, r, phase)
		}
	}
}

// decide takes in the committed proposal.
func (e *Engine) decide(a *agreement, agreed proposal) {
	a.proposal, a.accepted, a.decided = agreed, true, true
	e.deriveSubComm(a)
	a.call.changed.Notify()
}

// agreementWaitsFor marks the ranks whose messages are missing: the leader's, or those of
// the processes that have not voted or accepted.
func (e *Engine) agreementWaitsFor(a *agreement, waiting []bool) {
	if e.peers.leader() != e.config.Rank {
		waiting[e.peers.leader()] = true
		return
	}
	for _, r := range e.peers.members() {
		v, voted := a.votes[r]
		waiting[r] = !voted || v.view != uint32(e.peers.view) || a.acceptedBy != nil && !a.acceptedBy[r]
	}
}
