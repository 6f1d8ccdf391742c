package engine

import (
	"context"
	"slices"
)

// Install takes in a view: its number, and the ranks in it. It must be called for every
// view, in order. Survivors take over the tasks of failed processes, and run their parts
// in all calls that some process has not finished.
func (e *Engine) Install(view uint64, members []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.install(view, members)
}

func (e *Engine) install(view uint64, members []int) {
	if !e.peers.install(view, members) {
		return
	}
	e.resetProgress()
	for n := e.log.lowWater; n < e.calls.next; n++ {
		o := e.calls.byNumber[n]
		if o == nil || o.local == nil {
			continue
		}
		if o.local.signature.endsByFailure() && e.peers.anyFailed() && !o.returned {
			e.fail(o, e.failedError(o), false)
		}
		e.startTakenOver(o)
		e.relayAbort(o)
		o.changed.Notify()
	}
	e.voteAgain()
	e.sendRevocation()
	e.advance()
	e.updateLowWater()
	e.sender.replayLog()
	e.queryAgain()
	e.answerQueries()
	for _, n := range e.comms.nested {
		if n != e.generation.next { // which knows its members itself
			n.Install(view, n.ranksOf(e, e.peers.live))
		}
	}
}

// relayAbort sends on why a call has failed, if the process where it failed is not in the view: it may not have
// told all others, which would wait for the parts of its tasks. No process runs those in a call that has failed.
func (e *Engine) relayAbort(o *callState) {
	if a, ok := o.err.(*AbortError); ok && !slices.Contains(e.peers.members(), a.Rank) {
		e.sendAbort(o, a)
	}
}

// KeepOwners notes that all processes have made all their calls: processes that leave from
// now on have ended as they should, and no task moves any more.
func (e *Engine) KeepOwners() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.peers.keepOwners = true
	for _, n := range e.comms.nested {
		n.KeepOwners()
	}
}

// resetProgress forgets how far every process has come: one that has taken over tasks
// has their parts to run, in calls that it had finished.
func (e *Engine) resetProgress() {
	e.calls.completed, e.calls.finished = e.log.lowWater, e.log.lowWater
	for _, s := range e.peers.status {
		s.finished = 0
	}
	for _, o := range e.calls.byNumber {
		o.mixedViews, o.finishedByAll = true, min(o.finishedByAll, e.log.lowWater)
	}
}

// startTakenOver starts the parts of tasks that this process has taken over, in a call
// that it has made. The parts of a task run one after the other, as its former owner ran them:
// a later one shows that the earlier ones are done, and their messages compared (divergence.go).
// Agreements have nothing to compare, and wait for no earlier part: processes that have decided
// the last one of the job send no messages of earlier calls to a new owner ([Engine.KeepOwners]).
func (e *Engine) startTakenOver(o *callState) {
	if e.peers.owners == nil || o.err != nil || o.local.signature.Mode != RunThrough {
		return
	}
	for _, id := range e.peers.ownedBy(e.config.Rank) {
		if _, begun := o.runs.find(id); begun || id == e.config.Rank {
			continue
		}
		o.runs.set(id, false)
		t := &Task{ID: id, N: e.config.Size, engine: e, call: o, ctx: callContext{e.ctx, o.untilEnd()}}
		run, done := o.local.run, make(chan struct{})
		var before part
		if !o.local.signature.Kind.repairs() {
			before, e.peers.parts[id] = e.peers.parts[id], part{done, t.ctx.Done()}
		}
		e.work.Go(func() {
			defer close(done)
			before.await(t.ctx)
			err := run(t)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.partDone(t, err)
		})
	}
}

// part is a part of a task that was taken over, in one call.
type part struct{ done, needless <-chan struct{} }

// await waits until the part is done or no longer needed.
func (p part) await(ctx context.Context) {
	if p.done == nil {
		return // there is none
	}
	select {
	case <-p.done:
	case <-p.needless:
	case <-ctx.Done():
	}
}

// failedError is the error of a call in mode Report.
func (e *Engine) failedError(o *callState) error {
	return &FailedError{Ranks: e.peers.failed(), View: e.peers.view, Call: o.number, What: o.local.signature.String()}
}
