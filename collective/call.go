package collective

import (
	"context"
	"errors"
	"time"
)

// do makes a call: it does the part of this process's own task, and waits until
// those of the tasks that it has taken over are done too.
func (p Comm) do(ctx context.Context, s signature, run func(*task) error) error {
	e := p.engine
	o, err := p.begin(ctx, s, run)
	if err != nil {
		return err
	}
	e.runTask(ctx, o, e.config.Rank)
	return e.await(ctx, o)
}

// begin numbers the call, and waits if this process is too far ahead.
func (p Comm) begin(ctx context.Context, s signature, run func(*task) error) (*callState, error) {
	e := p.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.err != nil:
		return nil, e.err
	case e.revokedBy >= 0 && !s.kind.repairs():
		return nil, e.revokedError(e.next, s)
	}
	number, err := p.take()
	if err != nil {
		return nil, err
	}
	if s.kind.repairs() && e.diverged {
		delete(e.calls, number) // what others call by that number is something else
	}
	o := e.at(number)
	e.last = s
	for e.ahead(o.number) {
		e.sender.askAll()
		if err := e.waitForOthers(ctx); err != nil {
			e.fail(o, e.timeoutError(o, err), true)
			break
		}
	}
	o.inline.local = localPart{s, run, time.Now()}
	o.local = &o.inline.local
	o.piggyback = min(o.piggyback, e.finished)
	if o.firstFrom >= 0 && o.firstSig != s {
		e.mismatch(o, o.firstFrom, o.firstSig)
	}
	if s.endsByFailure() && len(e.gone) > 0 && o.err == nil {
		e.fail(o, e.failure(o), false)
	}
	e.watchdog.begin(e.remind)
	e.startTakenOver(o)
	return o, nil
}

// ahead reports whether too much is kept for others to begin a call. Who is not
// ahead of the slowest never waits, so somebody always goes on.
func (e *Engine) ahead(number uint64) bool {
	return e.err == nil && e.revokedBy < 0 && number > e.lowWater &&
		(number-e.lowWater >= uint64(e.config.KeepCalls) || e.logBytes > e.config.KeepBytes)
}

// waitForOthers waits until the floor has risen, and asks again now and then.
func (e *Engine) waitForOthers(ctx context.Context) error {
	moved := e.moved.Wait()
	e.mu.Unlock()
	defer e.mu.Lock()
	again := time.NewTimer(askAgain)
	defer again.Stop()
	select {
	case <-moved:
	case <-again.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// runTask does one task's part. An error of its own is everybody's.
func (e *Engine) runTask(ctx context.Context, o *callState, id int) {
	e.mu.Lock()
	o.runs.set(id, false)
	t := &task{e: e, call: o, ctx: ctx, id: id, n: e.config.Size}
	run := o.local.run
	e.mu.Unlock()
	err := run(t)
	e.mu.Lock()
	defer e.mu.Unlock()
	o.runs.set(id, true)
	if err != nil && o.err == nil {
		if errors.Is(err, ctx.Err()) {
			err = e.timeoutError(o, err)
		}
		e.fail(o, err, true)
	}
	o.changed.Notify()
	e.advance()
}

// await waits until all parts that are this process's to do are done.
func (e *Engine) await(ctx context.Context, o *callState) error {
	e.mu.Lock()
	defer e.mu.Unlock()
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
	err := o.err
	e.diverged = e.diverged || err != nil
	e.lastDone = finishedCall{o.number, agreementOf(o), o.local.signature, time.Now(), err}
	e.finish(o)
	return err
}

// complete reports whether the parts of all tasks that are owned now are done.
func (e *Engine) complete(o *callState) bool {
	if e.owners == nil {
		done, _ := o.runs.find(e.config.Rank)
		return done
	}
	for task, rank := range e.owners {
		mine := task == e.config.Rank || o.local.signature.failureMode == runThrough
		if rank != e.config.Rank || !mine {
			continue
		}
		if done, _ := o.runs.find(task); !done {
			return false
		}
	}
	return true
}

// finish says that this process's call is over. It stays known, for those whose is
// not, and for tasks that may still have to be taken over.
func (e *Engine) finish(o *callState) {
	o.finished = true
	for e.calls[e.returned] != nil && e.calls[e.returned].finished {
		e.returned++
	}
	e.advance()
	if o.err == nil && o.local.signature.total() && !o.mixedViews && o.view == uint32(e.view) {
		e.trimLog(o.piggyback)
	}
}

// advance counts the calls that are over here, taken over parts included.
func (e *Engine) advance() {
	for e.finished < e.returned {
		if o := e.calls[e.finished]; o != nil && o.err == nil && !e.complete(o) {
			return
		}
		e.finished++
	}
}

// fail ends a call with an error, and tells the others.
func (e *Engine) fail(o *callState, err error, tell bool) {
	if o.err != nil {
		return
	}
	o.end(err)
	if tell {
		e.sender.enqueue(e.abortNotice(o, err))
	}
}

// raise takes in that everybody has finished the calls before a number: what was
// kept for them can go.
func (e *Engine) trimLog(floor uint64) {
	floor = min(floor, e.returned)
	if floor <= e.lowWater {
		return
	}
	for n := e.lowWater; n < floor; n++ {
		o := e.calls[n]
		if o == nil {
			continue
		}
		e.dropEntries(o)
		o.end(errPast)
		delete(e.calls, n)
	}
	e.lowWater, e.finished = floor, max(e.finished, floor)
	e.advance()
	e.moved.Notify()
}

// letGo forgets the letters of a call that nobody needs any more.
func (e *Engine) dropEntries(o *callState) {
	for _, s := range o.log {
		e.logBytes -= s.size()
		s.payload.release()
	}
	o.log = nil
}
