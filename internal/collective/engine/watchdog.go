package engine

import "time"

// watchdog finds slow calls. One timer serves all calls and keeps running while they
// come and go, because setting one for each would cost more than many a call. It notes when
// calls begin and end, too: to within slowCall, but calls need not read the clock.
type watchdog struct {
	timer    *time.Timer
	running  bool
	ticked   time.Duration // time of the last tick, or of the start
	returned uint64        // calls that had returned then
	usual    lateness      // how long calls take
}

// startWatchdog makes sure that the timer runs.
func (e *Engine) startWatchdog() {
	w := &e.watchdog
	if w.running {
		return
	}
	w.ticked, w.returned = e.now(), e.calls.returned
	if w.timer == nil {
		w.timer = time.AfterFunc(slowCall, e.checkSlowCalls)
	} else {
		w.timer.Reset(slowCall)
	}
	w.running = true
}

// noteCalls takes in how long the calls took that have returned since the last tick with one.
func (w *watchdog) noteCalls(now time.Duration, returned uint64) {
	if returned > w.returned {
		w.usual.note((now - w.ticked) / time.Duration(returned-w.returned))
		w.ticked, w.returned = now, returned
	}
}

// slowAfter returns the time after which a call is slow: its mean plus four deviations, as
// retransmission timeouts are chosen (Jacobson 1988), so that slow calls on a busy host do not
// make it busier. A progress timeout leaves time for several asks.
func (w *watchdog) slowAfter(timeout time.Duration) time.Duration {
	limit := longestCall
	if timeout > 0 {
		limit = min(limit, timeout/4)
	}
	return max(slowCall, min(w.usual.mean+4*w.usual.deviation, limit))
}

// checkSlowCalls asks others for their progress if a call is slow. The watchdog stops when no call
// is in progress.
func (e *Engine) checkSlowCalls() {
	e.mu.Lock()
	defer e.mu.Unlock()
	w, now, open, asks := &e.watchdog, e.now(), false, maxAsks
	e.stampCalls(now)
	w.noteCalls(now, e.calls.returned)
	for _, o := range e.calls.byNumber {
		if o.local == nil || o.returned || o.err != nil {
			continue
		}
		open = true
		took := now - o.local.began
		if took >= w.slowAfter(e.progressTimeout(o)) {
			asks -= e.askInSlowCall(o, now, asks)
		}
		if took >= slowCall {
			e.accuseStuck(o, now)
		}
		o.ticked = now
	}
	w.running = open
	if open {
		w.timer.Reset(slowCall)
	}
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
