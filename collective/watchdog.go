package collective

import "time"

// watch sees to it that everybody is asked how far they have come when a call takes
// long. One timer is for all calls, and is left alone while they come and go: to set
// one for each would cost more than many a call.
type watchdog struct {
	timer   *time.Timer
	running bool
	asked   time.Time // when everybody was asked last
}

// begin says that there is a call.
func (w *watchdog) begin(remind func()) {
	switch {
	case w.running:
	case w.timer == nil:
		w.timer = time.AfterFunc(askAfter, remind)
	default:
		w.timer.Reset(askAfter)
	}
	w.running = true
}

// remind asks everybody, if a call has just turned out to take long, or still does
// after a while. Without calls the watch is over.
func (e *Engine) remind() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, open, ask := time.Now(), false, false
	for _, o := range e.calls {
		if o.local == nil || o.finished || o.err != nil {
			continue
		}
		open = true
		if now.Sub(o.local.began) >= askAfter {
			ask = ask || !o.reminded || now.Sub(e.watchdog.asked) >= askAgain
			o.reminded = true
		}
	}
	if e.watchdog.running = open; !open {
		return
	}
	if ask {
		e.watchdog.asked = now
		e.sender.askAll()
	}
	e.watchdog.timer.Reset(askAfter)
}
