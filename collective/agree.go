package collective

import (
	"context"
	"encoding/binary"
	"fmt"
)

// Agree returns, to all who survive, the bits that are set in everybody's value:
// the same to each, although processes die, and without a Restore. Of a process
// that dies during the call, the value counts for all or for none.
//
// Its input cannot be brought back, so a task's part cannot be done again: it is
// agreed on as views are. The lowest rank of the view gets everybody's vote, has
// everybody store the result, and says that it counts once all have. In the next
// view all vote again, with what they have stored. Whatever counted was stored by
// all of a view, so whoever leads a later one, whose members are among them, finds
// it; a store of an earlier view is not taken any more.
func Agree(ctx context.Context, w World, value uint64) (uint64, error) {
	s := signature{kind: agreeing, root: noRoot, length: noLength}
	var agreed uint64
	err := w.place().do(ctx, s, func(t *task) (err error) {
		if t.own() {
			agreed, err = t.agree(value)
		}
		return err
	})
	return result(agreed, err)
}

// agreement is what a process knows of what is agreed on in a call.
type agreement struct {
	voting bool
	value  uint64 // what it wants, or what is stored
	stored bool
	counts bool
	// Of the one who leads: votes by rank, and who has stored the value.
	votes  map[int]ballot
	having map[int]bool
}

// ballot is a vote in a view.
type ballot struct {
	view   uint32
	value  uint64
	stored bool
}

// agree votes, and waits until something counts.
func (t *task) agree(value uint64) (uint64, error) {
	e, o := t.e, t.op
	e.mu.Lock()
	defer e.mu.Unlock()
	a := &o.agreement
	a.voting, a.value = true, value
	e.vote(o)
	for !a.counts && o.err == nil {
		changed := o.changed.wait()
		e.mu.Unlock()
		select {
		case <-changed:
		case <-t.ctx.Done():
		}
		e.mu.Lock()
		if err := t.ctx.Err(); err != nil && !a.counts {
			return 0, err
		}
	}
	return a.value, o.err
}

// vote tells the one who leads what this process wants or has stored, in every
// view anew.
func (e *Engine) vote(o *op) {
	a := &o.agreement
	if !a.voting || o.err != nil {
		return
	}
	a.having = nil
	if e.live[0] == e.config.Rank {
		e.hearVote(o, e.config.Rank, ballot{uint32(e.view), a.value, a.stored})
		return
	}
	e.tellAgreement(o, e.live[0], vote)
}

func (e *Engine) tellAgreement(o *op, to int, w what) {
	h := head{what: w, number: o.number, view: uint32(e.view), floor: e.floor, signature: signature{kind: agreeing, root: noRoot, length: noLength}}
	body := binary.BigEndian.AppendUint64(nil, o.agreement.value)
	if o.agreement.stored {
		body = append(body, 1)
	} else {
		body = append(body, 0)
	}
	e.clerk.tell(errand{to, h.bytes(), body})
}

// hearAgreement takes in a message about what is agreed on.
func (e *Engine) hearAgreement(o *op, from int, h *head, body []byte) error {
	if len(body) != 9 {
		return fmt.Errorf("%w: %d bytes about an agreement, from rank %d", ErrMessage, len(body), from)
	}
	if !e.matches(o, from, h) {
		return nil
	}
	a := &o.agreement
	value, now := binary.BigEndian.Uint64(body), h.view == uint32(e.view)
	switch {
	case h.what == vote:
		e.hearVote(o, from, ballot{h.view, value, body[8] != 0})
	case h.what == commit:
		e.count(o, value)
	case h.what == store && now && a.voting:
		a.value, a.stored = value, true
		e.tellAgreement(o, from, stored)
	case h.what == stored && now && a.having != nil:
		e.hearStored(o, from)
	}
	return nil
}

// hearVote takes a vote. One of a view that is yet to come here is kept for then.
func (e *Engine) hearVote(o *op, from int, b ballot) {
	a := &o.agreement
	if a.votes == nil {
		a.votes = make(map[int]ballot)
	}
	a.votes[from] = b
	if e.live[0] != e.config.Rank || a.having != nil {
		return
	}
	for _, r := range e.live {
		if b, ok := a.votes[r]; !ok || b.view != uint32(e.view) {
			return
		}
	}
	e.propose(o)
}

// propose decides, when all have voted: what any has stored, or what all want.
func (e *Engine) propose(o *op) {
	a := &o.agreement
	for _, r := range e.live {
		if b := a.votes[r]; !a.stored {
			a.value, a.stored = a.value&b.value, b.stored
			if b.stored {
				a.value = b.value
			}
		}
	}
	a.stored, a.having = true, make(map[int]bool)
	for _, r := range e.live {
		if r != e.config.Rank {
			e.tellAgreement(o, r, store)
		}
	}
	e.hearStored(o, e.config.Rank)
}

// hearStored counts who has stored the value. When all have, it counts.
func (e *Engine) hearStored(o *op, from int) {
	a := &o.agreement
	a.having[from] = true
	for _, r := range e.live {
		if !a.having[r] {
			return
		}
	}
	for _, r := range e.live {
		if r != e.config.Rank {
			e.tellAgreement(o, r, commit)
		}
	}
	e.count(o, a.value)
}

// count takes in that a value counts.
func (e *Engine) count(o *op, value uint64) {
	a := &o.agreement
	a.value, a.stored, a.counts = value, true, true
	o.changed.give()
}
