package collective

import "slices"

// Install says who is there from a view on. It must be called for every view, in
// order. The tasks of those who are gone go to survivors, who do their parts in
// all calls that are not over everywhere.
func (e *Engine) Install(view uint64, members []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.view, e.live = view, slices.Sorted(slices.Values(members))
	if len(e.live) == 0 {
		return
	}
	e.noteGone()
	if e.owners == nil {
		e.owners = everyRank(e.config.Size)
	}
	before := slices.Clone(e.owners)
	reassign(e.owners, e.live)
	e.resetProgress(before)
	for n := e.lowWater; n < e.next; n++ {
		o := e.calls[n]
		if o == nil || o.local == nil {
			continue
		}
		if o.local.signature.endsByFailure() && len(e.gone) > 0 && !o.finished {
			e.fail(o, e.failure(o), false)
		}
		e.startTakenOver(o)
		o.changed.Notify()
	}
	e.voteAgain()
	e.sendRevocation()
	e.advance()
	e.updateLowWater()
	e.sender.resend()
	for _, w := range e.nested {
		w.Install(view, w.ranksOf(e, e.live))
	}
}

// reopen forgets how far everybody has come: who has taken over tasks has their
// parts to do, in calls that it had finished. So what counts is only what is said
// in one view. New owners are told the floor, which they may not know.
func (e *Engine) resetProgress(before []int) {
	e.finished = e.lowWater
	for _, s := range e.peers {
		s.finished = 0
	}
	for _, o := range e.calls {
		o.mixedViews, o.piggyback = true, min(o.piggyback, e.lowWater)
	}
	for task, owner := range e.owners {
		if owner != before[task] && owner != e.config.Rank {
			e.sender.reply(owner)
		}
	}
}

// adopt begins the parts of tasks that this process owns, beside its own, in a
// call that it has come to.
func (e *Engine) startTakenOver(o *callState) {
	if o.err != nil || o.local.signature.failureMode != runThrough {
		return
	}
	for _, id := range e.ownedBy(e.config.Rank) {
		if _, begun := o.runs.find(id); begun || id == e.config.Rank {
			continue
		}
		o.runs.set(id, false)
		e.work.Go(func() { e.runTask(o.ctx, o, id) })
	}
}

// failure is the error of a call that does not run through.
func (e *Engine) failure(o *callState) error {
	return &FailedError{Ranks: e.failedRanks(), View: e.view, Call: o.number, What: o.local.signature.String()}
}

// misdirected returns the letters whose task has moved since they were sent, in
// all calls that are not over everywhere. They are taken to be on their way to
// where it is now; those to this process's own tasks are.
func (e *Engine) messagesToResend() (errands []outMsg) {
	for n := e.lowWater; n < e.next; n++ {
		o := e.calls[n]
		if o == nil || o.err != nil {
			continue
		}
		for _, s := range o.log {
			owner := e.owner(s.envelope.to)
			if s.to == owner {
				continue
			}
			s.to = owner
			if owner == e.config.Rank {
				o.put(s.envelope, payload{bytes: slices.Clone(s.payload.bytes)})
				continue
			}
			// Held for ever: nobody tells when it has been sent.
			errands = append(errands, outMsg{owner, s.header[:], s.payload.retain().bytes})
		}
	}
	return errands
}
