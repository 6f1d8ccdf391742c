package engine

import "time"

// watchdog finds slow calls. One timer serves all calls and keeps running while they
// come and go, because setting one for each would cost more than many a call.
type watchdog struct {
	timer     *time.Timer
	running   bool
	requested time.Time // when progress was requested last
}

// start makes sure that the timer runs.
func (w *watchdog) start(check func()) {
	switch {
	case w.running:
	case w.timer == nil:
		w.timer = time.AfterFunc(slowCall, check)
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
	w, now, open, request := &e.watchdog, time.Now(), false, false
	for _, o := range e.calls.byNumber {
		if o.local == nil || o.returned || o.err != nil {
			continue
		}
		open = true
		if now.Sub(o.local.began) >= slowCall {
			request = request || !o.slow || now.Sub(w.requested) >= progressInterval
			o.slow = true
		}
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
