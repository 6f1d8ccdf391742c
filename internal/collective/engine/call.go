package engine

import (
	"context"
	"errors"
	"time"
)

// begin numbers the call, and blocks while this process is too far ahead.
func (c Comm) begin(ctx context.Context, s Signature, run func(*Task) error) (*callState, error) {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.err != nil:
		return nil, e.err
	case e.generation.candidacy != nil:
		return nil, ErrNotAdmitted
	case e.divergence != nil:
		return nil, e.divergence
	case e.revokedBy >= 0 && !s.Kind.repairs():
		return nil, e.revokedError(e.calls.next, s)
	}
	number, err := c.takeNumber()
	if err != nil {
		return nil, err
	}
	if s.Kind.repairs() && e.diverged {
		delete(e.calls.byNumber, number) // other processes use that number for another call
	}
	if !s.Kind.repairs() {
		s.Detail += e.selection
	}
	o := e.call(number)
	e.calls.last = s
	e.waitForOthers(ctx, o, s)
	o.own = localPart{signature: s, run: run}
	o.local = &o.own
	o.task = Task{ID: e.config.Rank, N: e.config.Size, engine: e, call: o, ctx: ctx}
	o.runs.set(o.task.ID, false)
	o.finishedByAll = min(o.finishedByAll, e.calls.finished)
	switch {
	case o.firstFrom >= 0 && o.firstSig != s:
		e.mismatch(o, o.firstFrom, o.firstSig)
	case o.oddFrom >= 0: // which is no matter of order: one of two that differ is not s
		e.mismatch(o, o.oddFrom, o.oddSig)
	}
	if missed := e.calls.missed; missed != nil {
		e.calls.missed = nil
		e.fail(o, missed, true)
	}
	if s.endsByFailure() && e.peers.anyFailed() && o.err == nil {
		e.fail(o, e.failedError(o), false)
	}
	e.startWatchdog()
	e.startTakenOver(o)
	return o, nil
}

// ahead reports whether this process must wait for others before it begins a call. A
// process that is not ahead of the slowest never waits, so one always proceeds.
func (e *Engine) ahead(number uint64) bool {
	low := e.log.lowWater
	return e.err == nil && e.revokedBy < 0 && number > low &&
		(number-low >= uint64(e.config.KeepCalls) || e.log.bytes > e.config.KeepBytes)
}

// waitForOthers waits while this process is too far ahead. It fails the call if it would
// wait for calls that are held.
func (e *Engine) waitForOthers(ctx context.Context, o *callState, s Signature) {
	if !e.ahead(o.number) {
		e.askAhead(o.number)
		return
	}
	e.peers.forgetHolds()
	interval := slowCall
	again := time.NewTimer(interval)
	defer again.Stop()
	e.askForRoom()
	since, low := e.now(), e.log.lowWater
	e.updateLowWater() // no report does it for a process that is alone
	for o.err == nil && e.ahead(o.number) {
		if err := e.holdError(o, s); err != nil {
			e.fail(o, err, true)
			return
		}
		advanced, ended, late := e.log.advanced.Wait(), o.untilEnd(), false
		e.mu.Unlock()
		select {
		case <-advanced:
		case <-ended:
		case <-again.C:
			late = true
		case <-ctx.Done():
		}
		e.mu.Lock()
		if e.log.lowWater != low {
			since, low = e.now(), e.log.lowWater
		}
		if late {
			e.askForRoom()
			e.updateLowWater()
			interval = min(2*interval, progressInterval)
			again.Reset(interval)
			e.accuseSlowest(o, s, since, e.now())
		}
		if err := ctx.Err(); err != nil {
			e.fail(o, e.timeoutError(o, err), true)
		}
	}
}

// partDone notes that a task's part has been run. An error in it fails the call on all
// processes.
func (e *Engine) partDone(t *Task, err error) {
	o := t.call
	o.runs.set(t.ID, true)
	if err != nil && o.err == nil {
		switch {
		case errors.Is(err, t.ctx.Err()):
			err = e.timeoutError(o, err)
		case e.calls.mismatch != nil && t.ID != e.config.Rank: // why that process has gone
			err = e.calls.mismatch
		}
		e.fail(o, err, true)
	}
	o.changed.Notify()
	e.advance()
}

// await waits until all parts that this process has to run are done. That of its own task
// has ended with ran.
func (e *Engine) await(ctx context.Context, o *callState, ran error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.partDone(&o.task, ran)
	for o.err == nil && !e.complete(o) {
		changed := o.changed.Wait()
		e.mu.Unlock()
		select {
		case <-changed:
			e.mu.Lock()
		case <-ctx.Done():
			e.mu.Lock()
			e.fail(o, e.timeoutError(o, ctx.Err()), true)
		}
	}
	if e.calls.missed != nil && o.err == nil { // it has come during this call
		e.fail(o, e.calls.missed, false)
		e.calls.missed = nil
	}
	err := o.err
	e.diverged = e.diverged || err != nil
	e.calls.lastDone = doneCall{o.number, o.agreementNumber(), o.local.signature, 0, err}
	e.finish(o)
	return err
}

// complete reports whether the parts of all tasks that this process owns are done, its own one
// having been run.
func (e *Engine) complete(o *callState) bool {
	self := e.config.Rank
	for task, rank := range e.peers.owners {
		mine := task == self || o.local.signature.Mode == RunThrough
		if rank != self || !mine {
			continue
		}
		if done, _ := o.runs.find(task); !done {
			return false
		}
	}
	return true
}

// finish notes that this process's call returns. The engine keeps the call's state for
// processes that are behind, and for tasks that this process may still take over.
func (e *Engine) finish(o *callState) {
	o.returned = true
	c := &e.calls
	for c.byNumber[c.returned] != nil && c.byNumber[c.returned].returned {
		c.returned++
	}
	e.advance()
	if o.err == nil && o.local.signature.total() && !o.mixedViews && o.view == uint32(e.peers.view) {
		e.trimLog(o.finishedByAll)
	}
}

// advance counts the calls that are finished here, parts of taken-over tasks included.
func (e *Engine) advance() {
	c := &e.calls
	for c.completed < c.returned {
		if o := c.byNumber[c.completed]; o != nil && o.err == nil && !e.complete(o) {
			break
		}
		c.completed++
	}
	c.finished = max(c.finished, e.holds.finished(c.completed))
}

// fail ends a call with an error, and tells the other processes if notify is set.
func (e *Engine) fail(o *callState, err error, notify bool) {
	if o.err != nil {
		return
	}
	o.end(err)
	if notify {
		e.sendAbort(o, err)
	}
}
