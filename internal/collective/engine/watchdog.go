package engine

import "time"

// watchdog finds slow calls. One timer serves all calls and keeps running while they
// come and go, because setting one for each would cost more than many a call. It notes when
// calls begin and end, too: to within slowCall, but calls need not read the clock.
type watchdog struct {
	timer     *time.Timer
	running   bool
	requested time.Duration // when progress was requested last
}

// startWatchdog makes sure that the timer runs.
func (e *Engine) startWatchdog() {
	w := &e.watchdog
	switch {
	case w.running:
	case w.timer == nil:
		w.timer = time.AfterFunc(slowCall, e.checkSlowCalls)
	default:
		w.timer.Reset(slowCall)
	}
	w.running = true
}

// checkSlowCalls requests progress if a call has become slow, or still is after a while.
// The watchdog stops when no call is in progress.
func (e *Engine) checkSlowCalls() {
	e.mu.Lock()
	defer e.mu.Unlock()
	w, now, open, request := &e.watchdog, e.now(), false, false
	e.stampCalls(now)
	for _, o := range e.calls.byNumber {
		if o.local == nil || o.returned || o.err != nil {
			continue
		}
		open = true
		if now-o.local.began >= slowCall {
			request = request || !o.slow || now-w.requested >= progressInterval
			o.slow = true
			e.accuseStuck(o, now)
		}
		o.ticked = now
	}
	if w.running = open; !open {
		return
	}
	if request {
		w.requested = now
		e.sender.requestProgress()
	}
	w.timer.Reset(slowCall)
}

// stampCalls notes the time of calls that have begun or returned since it did so last.
func (e *Engine) stampCalls(now time.Duration) {
	for _, o := range e.calls.byNumber {
		if o.local != nil && o.local.began == 0 {
			o.local.began = now
		}
	}
	if d := &e.calls.lastDone; d.at == 0 {
		d.at = now
	}
}
