package engine

import "fmt"

// The messages of an agreement: votes go to the leader, which sends its proposal to all,
// counts the ranks that have accepted it, and commits. agreement.go says why that is safe.

// sendAgreement sends one phase of an agreement.
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
		e.derive(a)
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
		return nil, fmt.Errorf("%w: rank %d is at agreement %d, %v, this one at %d", ErrMessage, from, m.number,
			m.signature, begun)
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
	e.noteMismatch(nil, notice.err)
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
	e.derive(a)
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

// derive derives what the proposal stands for. The proposal does not change any more.
func (e *Engine) derive(a *agreement) {
	e.deriveSubComm(a)
	e.deriveGeneration(a)
}

func (e *Engine) sendToOthers(a *agreement, phase msgType) {
	for _, r := range e.peers.members() {
		if r != e.config.Rank {
			e.sendAgreement(a, r, phase)
		}
	}
}

// decide takes in the committed proposal. An agreement is decided again in later views, for
// processes that have missed it, also when the next one is under way.
func (e *Engine) decide(a *agreement, agreed proposal) {
	a.proposal, a.accepted, a.decided = agreed, true, true
	e.derive(a)
	if a.next != nil {
		a.next.beginGeneration()
	}
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
