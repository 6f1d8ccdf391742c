package collective

import "time"

// How long a call may take before everybody is asked how far they have come, and
// how often it is asked again. It answers "who is holding us up", and lets go of
// what is kept where calls do not tell by themselves.
const (
	askAfter = 20 * time.Millisecond
	askAgain = 500 * time.Millisecond
)

// status is what is known of another process.
type status struct {
	heard          bool
	lost           bool   // nobody is there, says the link
	next, finished uint64 // calls begun, and finished
	last           signature
}

// newsHead says how far this process has come.
func (e *Engine) newsHead(w what) []byte {
	h := head{what: w, signature: e.last, number: e.next, view: uint32(e.view), low: e.finished, floor: e.floor}
	return h.bytes()
}

// hearNews takes in how far another process has come.
func (e *Engine) hearNews(from int, h *head) {
	s := &e.heard[from]
	s.heard = true
	if h.number >= s.next {
		s.next, s.last = h.number, h.signature
	}
	e.raise(h.floor)
	if h.view == uint32(e.view) {
		s.finished = max(s.finished, h.low)
		e.survey()
	}
}

// survey finds the floor by what all others have said.
func (e *Engine) survey() {
	floor := e.finished
	for _, r := range e.live {
		if r != e.config.Rank {
			floor = min(floor, e.heard[r].finished)
		}
	}
	e.raise(floor)
}

// remind asks everybody, if a call is still not over.
func (e *Engine) remind(o *op) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.finished || o.err != nil {
		return
	}
	e.clerk.askAll()
	o.reminder.Reset(askAgain)
}

// late is the error of a call whose context has ended.
func (e *Engine) late(o *op, cause error) error {
	l := &LateError{Call: o.number, What: e.last.String(), View: e.view, Err: cause}
	if o.call != nil {
		l.What = o.call.signature.String()
	}
	waiting := make([]bool, e.config.Size)
	for k, s := range o.box {
		if s.wait != nil {
			waiting[e.owners[k.from]] = true
		}
	}
	for _, r := range e.live {
		s := &e.heard[r]
		if r != e.config.Rank && s.next <= o.number {
			l.Absent = append(l.Absent, Absent{Rank: r, Calls: s.next, Last: s.last.String(), Silent: !s.heard})
		}
		if waiting[r] {
			l.Waiting = append(l.Waiting, r)
		}
	}
	return l
}
