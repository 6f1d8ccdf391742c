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
	e.reopen(before)
	for n := e.floor; n < e.next; n++ {
		o := e.ops[n]
		if o == nil || o.call == nil {
			continue
		}
		if o.call.signature.endsByFailure() && len(e.gone) > 0 && !o.finished {
			e.fail(o, e.failure(o), false)
		}
		e.adopt(o)
		o.changed.give()
	}
	e.voteAgain()
	e.tellRevocation()
	e.advance()
	e.survey()
	e.clerk.forward()
	for _, w := range e.inner {
		w.Install(view, w.ranksOf(e, e.live))
	}
}

// reopen forgets how far everybody has come: who has taken over tasks has their
// parts to do, in calls that it had finished. So what counts is only what is said
// in one view. New owners are told the floor, which they may not know.
func (e *Engine) reopen(before []int) {
	e.finished = e.floor
	for _, s := range e.heard {
		s.finished = 0
	}
	for _, o := range e.ops {
		o.several, o.low = true, min(o.low, e.floor)
	}
	for task, owner := range e.owners {
		if owner != before[task] && owner != e.config.Rank {
			e.clerk.reply(owner)
		}
	}
}

// adopt begins the parts of tasks that this process owns, beside its own, in a
// call that it has come to.
func (e *Engine) adopt(o *op) {
	if o.err != nil || o.call.signature.strength != runThrough {
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
func (e *Engine) failure(o *op) error {
	return &FailedError{Ranks: e.failedRanks(), View: e.view, Call: o.number, What: o.call.signature.String()}
}

// misdirected returns the letters whose task has moved since they were sent, in
// all calls that are not over everywhere. They are taken to be on their way to
// where it is now; those to this process's own tasks are.
func (e *Engine) misdirected() (errands []errand) {
	for n := e.floor; n < e.next; n++ {
		o := e.ops[n]
		if o == nil || o.err != nil {
			continue
		}
		for _, s := range o.sent {
			owner := e.owner(s.key.to)
			if s.to == owner {
				continue
			}
			s.to = owner
			if owner == e.config.Rank {
				o.put(s.key, page{bytes: slices.Clone(s.page.bytes)})
				continue
			}
			// Held for ever: nobody tells when it has been sent.
			errands = append(errands, errand{owner, s.head[:], s.page.hold().bytes})
		}
	}
	return errands
}
