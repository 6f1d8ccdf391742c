package collective

import (
	"fmt"
	"math"

	"github.com/pleach-go/pleach/wire"
)

// pact is what a process knows of one agreement: of an [Agree], or of a [Shrink],
// which agrees on a view.
//
// What a process puts in cannot be brought back, so a task's part cannot be done
// again: it is agreed on as views are. The lowest rank of the view gets everybody's
// vote, has everybody store the terms, and says that they count once all have. In
// the next view all vote again, with what they have stored. Whatever counted was
// stored by all of a view, so whoever leads a later one, whose members are among
// them, finds it; a store of an earlier view is not taken any more. And what has
// been stored by one who lives is never replaced, because the next to lead gets
// its vote.
//
// Pacts have numbers of their own: after a failure processes may have come to
// different calls. They are made one after the other, so whoever has begun one
// knows that all have begun the one before, and need the one before that no more.
type agreement struct {
	number uint64
	call   *callState // nil: this process has not come to it yet
	// witness is whose message came first, and what it called.
	firstFrom int
	firstSig  signature
	aborted   error // another has given it up before this process came to it

	vote    // this process's
	decided bool
	subComm *Engine // that was made by it

	// Of the one who leads: votes by rank, and who has stored the terms.
	votes      map[int]vote
	acceptedBy map[int]bool
}

// ballot is a vote in a view: what a process wants, or what it has stored.
type vote struct {
	view     uint32 // the view
	accepted bool
	proposal proposal
}

// terms are what is agreed on: the bits that all have set, the view up to which
// all have acknowledged failures, and the view in which it was proposed.
type proposal struct{ value, acked, view uint64 }

// unnumbered, as the number of a call, says that it means nothing to others.
const unnumbered = math.MaxUint64

// pactOf returns the pact of a number.
func (e *Engine) agreementAt(number uint64) *agreement {
	p := e.agreements[number]
	if p == nil {
		p = &agreement{number: number, firstFrom: -1}
		e.agreements[number] = p
	}
	return p
}

// settle makes a pact: it votes, waits until something counts, and returns that, and
// the world that was made by it.
func (t *task) agree(value uint64) (proposal, *Engine, error) {
	e, o := t.e, t.call
	select {
	case e.agreementTurn <- struct{}{}:
		defer func() { <-e.agreementTurn }()
	case <-t.ctx.Done():
		return proposal{}, nil, t.ctx.Err()
	case <-o.ctx.Done(): // its error is known
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.err != nil {
		return proposal{}, nil, o.err
	}
	p := e.beginAgreement(o, value)
	for !p.decided && o.err == nil {
		changed := o.changed.Wait()
		e.mu.Unlock()
		select {
		case <-changed:
		case <-t.ctx.Done():
		}
		e.mu.Lock()
		if err := t.ctx.Err(); err != nil && !p.decided {
			return proposal{}, nil, err
		}
	}
	if p.decided {
		return p.proposal, p.subComm, nil
	}
	return proposal{}, nil, o.err
}

// beginPact takes the next number, and votes.
func (e *Engine) beginAgreement(o *callState, value uint64) *agreement {
	p := e.agreementAt(e.begun)
	delete(e.agreements, e.begun-2)
	e.begun++
	p.call, o.agreement = o, p
	p.proposal = proposal{value: value, acked: e.acked}
	switch {
	case p.aborted != nil:
		e.fail(o, p.aborted, false)
	case p.firstFrom >= 0 && p.firstSig != o.local.signature:
		e.mismatchAgreement(p, p.firstFrom, p.firstSig)
	}
	e.vote(p)
	return p
}

// voteAgain votes in a new view.
func (e *Engine) voteAgain() {
	for n := e.begun - min(e.begun, 2); n < e.begun; n++ {
		e.vote(e.agreements[n])
	}
}

// vote tells the one who leads what this process wants or has stored, in every
// view anew. Who has given up does not vote.
func (e *Engine) vote(p *agreement) {
	if p == nil || p.call == nil || p.call.err != nil && !p.decided {
		return
	}
	p.acceptedBy = nil
	p.view = uint32(e.view)
	if e.leader() == e.config.Rank {
		e.handleVote(p, e.config.Rank, p.vote)
		return
	}
	e.sendAgreement(p, e.leader(), typeVote)
}

func (e *Engine) sendAgreement(p *agreement, to int, w msgType) {
	h := header{msgType: w, number: p.call.number, view: uint32(e.view), lowWater: e.lowWater, signature: p.call.local.signature}
	if e.diverged {
		h.number = unnumbered
	}
	b := wire.AppendUint64(nil, p.number)
	for _, v := range []uint64{p.proposal.value, p.proposal.acked, p.proposal.view} {
		b = wire.AppendUint64(b, v)
	}
	flag := uint8(0)
	if p.accepted {
		flag = 1
	}
	e.sender.enqueue(outMsg{to, h.bytes(), wire.AppendUint8(b, flag)})
}

// hearPact takes in a message about what is agreed on.
func (e *Engine) handleAgreement(from int, h *header, body []byte) error {
	d := wire.NewDecoder(body)
	number := d.Uint64()
	b := vote{view: h.view, proposal: proposal{d.Uint64(), d.Uint64(), d.Uint64()}, accepted: d.Uint8() != 0}
	if err := d.Finish(); err != nil {
		return fmt.Errorf("%w: %w, about an agreement, from rank %d", ErrMessage, err, from)
	}
	p, err := e.agreementOfMessage(from, number, h)
	if p == nil {
		return err
	}
	now := h.view == uint32(e.view) && p.call != nil
	switch {
	case h.msgType == typeVote:
		e.handleVote(p, from, b)
	case h.msgType == typeCommit && p.call != nil:
		e.decide(p, b.proposal)
	case h.msgType == typeAccept && now:
		p.proposal, p.accepted = b.proposal, true
		e.newSubComm(p)
		e.sendAgreement(p, from, typeAccepted)
	case h.msgType == typeAccepted && now && p.acceptedBy != nil:
		e.handleAccepted(p, from)
	}
	return nil
}

// heardPact returns the pact that a message is about, unless it is over, or others
// have called something else.
func (e *Engine) agreementOfMessage(from int, number uint64, h *header) (*agreement, error) {
	switch {
	case !h.signature.kind.repairs() || number >= e.begun+uint64(e.config.KeepCalls):
		return nil, fmt.Errorf("%w: rank %d is at agreement %d, %v, this one at %d", ErrMessage, from, number, h.signature, e.begun)
	case number+2 < e.begun:
		return nil, nil
	}
	s := e.peer(from)
	s.heard, s.agreements = true, max(s.agreements, int(number)+1)
	p := e.agreementAt(number)
	if p.firstFrom < 0 {
		p.firstFrom, p.firstSig = from, h.signature
	}
	if p.call != nil && p.call.local.signature != h.signature {
		e.mismatchAgreement(p, from, h.signature)
		return nil, nil
	}
	if !e.inOrder(from, h) {
		return nil, nil
	}
	return p, nil
}

// inOrder reports whether who votes has come to its call as this process has, by
// the numbers of calls. They mean nothing once a call has ended with an error.
func (e *Engine) inOrder(from int, h *header) bool {
	if h.msgType != typeVote || h.number == unnumbered || e.diverged ||
		h.number < e.lowWater || h.number >= e.returned+2*uint64(e.config.KeepCalls) {
		return true
	}
	return e.matches(e.at(h.number), from, h)
}

// mismatchPact ends an agreement that others have called differently.
func (e *Engine) mismatchAgreement(p *agreement, other int, called signature) {
	e.fail(p.call, &MismatchError{
		Call: p.call.number, Rank: e.config.Rank, What: p.call.local.signature.String(),
		Other: other, OtherWhat: called.String(),
	}, true)
}

// hearPactAbort takes in that an Agree or a Shrink has failed elsewhere: this
// process's one of that number fails, too, unless it counts. So does its call of
// the same number, if the two did not match.
func (e *Engine) handleAgreementAbort(from int, h *header, body []byte) error {
	err, bad := parseAbort(from, h, body)
	if bad != nil {
		return bad
	}
	if _, ok := err.(*MismatchError); ok && !e.diverged && h.number >= e.lowWater && h.number < e.returned+2*uint64(e.config.KeepCalls) {
		e.fail(e.at(h.number), err, false)
	}
	number := h.piggyback - 1 // 0: none
	if number+2 < e.begun || number >= e.begun+uint64(e.config.KeepCalls) {
		return nil
	}
	switch p := e.agreementAt(number); {
	case p.call == nil:
		p.aborted = err
	case !p.decided:
		e.fail(p.call, err, false)
	}
	return nil
}

// hearVote takes a vote. One of a view that is yet to come here is kept for then.
func (e *Engine) handleVote(p *agreement, from int, b vote) {
	if p.votes == nil {
		p.votes = make(map[int]vote)
	}
	p.votes[from] = b
	if e.leader() != e.config.Rank || p.acceptedBy != nil {
		return
	}
	for _, r := range e.members() {
		if b, ok := p.votes[r]; !ok || b.view != uint32(e.view) {
			return
		}
	}
	e.propose(p)
}

// propose decides, when all have voted: what any has stored, or what all want.
func (e *Engine) propose(p *agreement) {
	for _, r := range e.members() {
		b := p.votes[r]
		if p.accepted {
			break
		}
		p.proposal.value &= b.proposal.value
		p.proposal.acked = min(p.proposal.acked, b.proposal.acked)
		p.proposal.view = e.view
		if b.accepted {
			p.proposal, p.accepted = b.proposal, true
		}
	}
	p.accepted, p.acceptedBy = true, make(map[int]bool)
	e.newSubComm(p)
	for _, r := range e.members() {
		if r != e.config.Rank {
			e.sendAgreement(p, r, typeAccept)
		}
	}
	e.handleAccepted(p, e.config.Rank)
}

// hearStored counts who has stored the terms. When all have, they count.
func (e *Engine) handleAccepted(p *agreement, from int) {
	p.acceptedBy[from] = true
	for _, r := range e.members() {
		if !p.acceptedBy[r] {
			return
		}
	}
	for _, r := range e.members() {
		if r != e.config.Rank {
			e.sendAgreement(p, r, typeCommit)
		}
	}
	e.decide(p, p.proposal)
}

// count takes in that terms count.
func (e *Engine) decide(p *agreement, agreed proposal) {
	p.proposal, p.accepted, p.decided = agreed, true, true
	e.newSubComm(p)
	p.call.changed.Notify()
}

// pactWaitsFor marks whose word is missing: of the one who leads, or of those who
// have not voted, or not stored.
func (e *Engine) agreementWaitsFor(p *agreement, waiting []bool) {
	if e.leader() != e.config.Rank {
		waiting[e.leader()] = true
		return
	}
	for _, r := range e.members() {
		b, voted := p.votes[r]
		waiting[r] = !voted || b.view != uint32(e.view) || p.acceptedBy != nil && !p.acceptedBy[r]
	}
}
