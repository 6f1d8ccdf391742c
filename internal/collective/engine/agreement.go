package engine

import (
	"context"
	"math"
	"time"
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
	next    *Engine // the generation that Admit has derived

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
// returns a [*FailedError] for failures that not all had acknowledged. Processes that do not
// come within a time, if it is not 0, are removed.
func (c Comm) Agree(ctx context.Context, s Signature, value uint64, within time.Duration) (uint64, error) {
	if c.engine.finalizing.Load() {
		s.Kind = Finalize
	}
	var agreed proposal
	var call uint64
	err := c.Do(ctx, s, func(t *Task) (err error) {
		if t.Own() {
			call = t.call.number
			agreed, _, err = t.agree(value, within)
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
func (t *Task) agree(value uint64, within time.Duration) (proposal, *Engine, error) {
	e, o := t.engine, t.call
	e.mu.Lock()
	if o.err != nil {
		defer e.mu.Unlock()
		return proposal{}, nil, o.err
	}
	o.within = within
	ended := o.untilEnd()
	e.mu.Unlock()
	select {
	case e.agreements.turn <- struct{}{}:
		defer func() { <-e.agreements.turn }()
	case <-t.ctx.Done():
		return proposal{}, nil, t.ctx.Err()
	case <-ended: // o.err is set
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
		err := e.mismatchError(o, a.firstFrom, a.firstSig)
		e.noteMismatch(nil, err)
		e.fail(o, err, true)
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

// sendVote sends the leader what this process proposes or has accepted, once in every view.
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
