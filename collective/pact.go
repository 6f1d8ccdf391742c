package collective

import (
	"fmt"
	"math"

	"github.com/pleach-go/pleach/internal/wire"
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
type pact struct {
	number uint64
	op     *op // nil: this process has not come to it yet
	// witness is whose message came first, and what it called.
	witness   int
	witnessed signature
	failed    error // another has given it up before this process came to it

	ballot // this process's
	counts bool
	world  *Engine // that was made by it

	// Of the one who leads: votes by rank, and who has stored the terms.
	votes  map[int]ballot
	having map[int]bool
}

// ballot is a vote in a view: what a process wants, or what it has stored.
type ballot struct {
	cast   uint32 // the view
	stored bool
	terms  terms
}

// terms are what is agreed on: the bits that all have set, the view up to which
// all have acknowledged failures, and the view in which it was proposed.
type terms struct{ value, acked, view uint64 }

// unnumbered, as the number of a call, says that it means nothing to others.
const unnumbered = math.MaxUint64

// pactOf returns the pact of a number.
func (e *Engine) pactOf(number uint64) *pact {
	p := e.pacts[number]
	if p == nil {
		p = &pact{number: number, witness: -1}
		e.pacts[number] = p
	}
	return p
}

// settle makes a pact: it votes, waits until something counts, and returns that, and
// the world that was made by it.
func (t *task) settle(value uint64) (terms, *Engine, error) {
	e, o := t.e, t.op
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-t.ctx.Done():
		return terms{}, nil, t.ctx.Err()
	case <-o.ctx.Done(): // its error is known
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.err != nil {
		return terms{}, nil, o.err
	}
	p := e.beginPact(o, value)
	for !p.counts && o.err == nil {
		changed := o.changed.wait()
		e.mu.Unlock()
		select {
		case <-changed:
		case <-t.ctx.Done():
		}
		e.mu.Lock()
		if err := t.ctx.Err(); err != nil && !p.counts {
			return terms{}, nil, err
		}
	}
	if p.counts {
		return p.terms, p.world, nil
	}
	return terms{}, nil, o.err
}

// beginPact takes the next number, and votes.
func (e *Engine) beginPact(o *op, value uint64) *pact {
	p := e.pactOf(e.begun)
	delete(e.pacts, e.begun-2)
	e.begun++
	p.op, o.pact = o, p
	p.terms = terms{value: value, acked: e.acked}
	switch {
	case p.failed != nil:
		e.fail(o, p.failed, false)
	case p.witness >= 0 && p.witnessed != o.call.signature:
		e.mismatchPact(p, p.witness, p.witnessed)
	}
	e.vote(p)
	return p
}

// voteAgain votes in a new view.
func (e *Engine) voteAgain() {
	for n := e.begun - min(e.begun, 2); n < e.begun; n++ {
		e.vote(e.pacts[n])
	}
}

// vote tells the one who leads what this process wants or has stored, in every
// view anew. Who has given up does not vote.
func (e *Engine) vote(p *pact) {
	if p == nil || p.op == nil || p.op.err != nil && !p.counts {
		return
	}
	p.having = nil
	p.cast = uint32(e.view)
	if e.leader() == e.config.Rank {
		e.hearVote(p, e.config.Rank, p.ballot)
		return
	}
	e.tellPact(p, e.leader(), vote)
}

func (e *Engine) tellPact(p *pact, to int, w what) {
	h := head{what: w, number: p.op.number, view: uint32(e.view), floor: e.floor, signature: p.op.call.signature}
	if e.strayed {
		h.number = unnumbered
	}
	b := wire.AppendUint64(nil, p.number)
	for _, v := range []uint64{p.terms.value, p.terms.acked, p.terms.view} {
		b = wire.AppendUint64(b, v)
	}
	flag := uint8(0)
	if p.stored {
		flag = 1
	}
	e.clerk.tell(errand{to, h.bytes(), wire.AppendUint8(b, flag)})
}

// hearPact takes in a message about what is agreed on.
func (e *Engine) hearPact(from int, h *head, body []byte) error {
	d := wire.NewDecoder(body)
	number := d.Uint64()
	b := ballot{cast: h.view, terms: terms{d.Uint64(), d.Uint64(), d.Uint64()}, stored: d.Uint8() != 0}
	if err := d.Finish(); err != nil {
		return fmt.Errorf("%w: %w, about an agreement, from rank %d", ErrMessage, err, from)
	}
	p, err := e.heardPact(from, number, h)
	if p == nil {
		return err
	}
	now := h.view == uint32(e.view) && p.op != nil
	switch {
	case h.what == vote:
		e.hearVote(p, from, b)
	case h.what == commit && p.op != nil:
		e.count(p, b.terms)
	case h.what == store && now:
		p.terms, p.stored = b.terms, true
		e.found(p)
		e.tellPact(p, from, stored)
	case h.what == stored && now && p.having != nil:
		e.hearStored(p, from)
	}
	return nil
}

// heardPact returns the pact that a message is about, unless it is over, or others
// have called something else.
func (e *Engine) heardPact(from int, number uint64, h *head) (*pact, error) {
	switch {
	case !h.signature.kind.repairs() || number >= e.begun+uint64(e.config.KeepCalls):
		return nil, fmt.Errorf("%w: rank %d is at agreement %d, %v, this one at %d", ErrMessage, from, number, h.signature, e.begun)
	case number+2 < e.begun:
		return nil, nil
	}
	s := e.of(from)
	s.heard, s.agreements = true, max(s.agreements, int(number)+1)
	p := e.pactOf(number)
	if p.witness < 0 {
		p.witness, p.witnessed = from, h.signature
	}
	if p.op != nil && p.op.call.signature != h.signature {
		e.mismatchPact(p, from, h.signature)
		return nil, nil
	}
	if !e.inOrder(from, h) {
		return nil, nil
	}
	return p, nil
}

// inOrder reports whether who votes has come to its call as this process has, by
// the numbers of calls. They mean nothing once a call has ended with an error.
func (e *Engine) inOrder(from int, h *head) bool {
	if h.what != vote || h.number == unnumbered || e.strayed ||
		h.number < e.floor || h.number >= e.returned+2*uint64(e.config.KeepCalls) {
		return true
	}
	return e.matches(e.at(h.number), from, h)
}

// mismatchPact ends an agreement that others have called differently.
func (e *Engine) mismatchPact(p *pact, other int, called signature) {
	e.fail(p.op, &MismatchError{
		Call: p.op.number, Rank: e.config.Rank, What: p.op.call.signature.String(),
		Other: other, OtherWhat: called.String(),
	}, true)
}

// hearPactAbort takes in that an Agree or a Shrink has failed elsewhere: this
// process's one of that number fails, too, unless it counts. So does its call of
// the same number, if the two did not match.
func (e *Engine) hearPactAbort(from int, h *head, body []byte) error {
	err, bad := parseAbort(from, h, body)
	if bad != nil {
		return bad
	}
	if _, ok := err.(*MismatchError); ok && !e.strayed && h.number >= e.floor && h.number < e.returned+2*uint64(e.config.KeepCalls) {
		e.fail(e.at(h.number), err, false)
	}
	number := h.low - 1 // 0: none
	if number+2 < e.begun || number >= e.begun+uint64(e.config.KeepCalls) {
		return nil
	}
	switch p := e.pactOf(number); {
	case p.op == nil:
		p.failed = err
	case !p.counts:
		e.fail(p.op, err, false)
	}
	return nil
}

// hearVote takes a vote. One of a view that is yet to come here is kept for then.
func (e *Engine) hearVote(p *pact, from int, b ballot) {
	if p.votes == nil {
		p.votes = make(map[int]ballot)
	}
	p.votes[from] = b
	if e.leader() != e.config.Rank || p.having != nil {
		return
	}
	for _, r := range e.members() {
		if b, ok := p.votes[r]; !ok || b.cast != uint32(e.view) {
			return
		}
	}
	e.propose(p)
}

// propose decides, when all have voted: what any has stored, or what all want.
func (e *Engine) propose(p *pact) {
	for _, r := range e.members() {
		b := p.votes[r]
		if p.stored {
			break
		}
		p.terms.value &= b.terms.value
		p.terms.acked = min(p.terms.acked, b.terms.acked)
		p.terms.view = e.view
		if b.stored {
			p.terms, p.stored = b.terms, true
		}
	}
	p.stored, p.having = true, make(map[int]bool)
	e.found(p)
	for _, r := range e.members() {
		if r != e.config.Rank {
			e.tellPact(p, r, store)
		}
	}
	e.hearStored(p, e.config.Rank)
}

// hearStored counts who has stored the terms. When all have, they count.
func (e *Engine) hearStored(p *pact, from int) {
	p.having[from] = true
	for _, r := range e.members() {
		if !p.having[r] {
			return
		}
	}
	for _, r := range e.members() {
		if r != e.config.Rank {
			e.tellPact(p, r, commit)
		}
	}
	e.count(p, p.terms)
}

// count takes in that terms count.
func (e *Engine) count(p *pact, agreed terms) {
	p.terms, p.stored, p.counts = agreed, true, true
	e.found(p)
	p.op.changed.give()
}

// pactWaitsFor marks whose word is missing: of the one who leads, or of those who
// have not voted, or not stored.
func (e *Engine) pactWaitsFor(p *pact, waiting []bool) {
	if e.leader() != e.config.Rank {
		waiting[e.leader()] = true
		return
	}
	for _, r := range e.members() {
		b, voted := p.votes[r]
		waiting[r] = !voted || b.cast != uint32(e.view) || p.having != nil && !p.having[r]
	}
}
