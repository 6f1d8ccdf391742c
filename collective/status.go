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
	agreements     int    // begun
	last           signature
}

// newsHead says how far this process has come.
func (e *Engine) newsHead(w what) []byte {
	h := head{what: w, signature: e.last, number: e.next, step: int(e.begun), view: uint32(e.view), low: e.finished, floor: e.floor}
	return h.bytes()
}

// hearNews takes in how far another process has come.
func (e *Engine) hearNews(from int, h *head) {
	s := e.of(from)
	s.heard, s.agreements = true, max(s.agreements, h.step)
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
	for _, r := range e.members() {
		if r != e.config.Rank {
			floor = min(floor, e.of(r).finished)
		}
	}
	e.raise(floor)
}

// late is the error of a call whose context has ended.
func (e *Engine) late(o *op, cause error) error {
	l := &LateError{Call: o.number, What: e.last.String(), View: e.view, Err: cause}
	if o.call != nil {
		l.What = o.call.signature.String()
	}
	for _, r := range e.members() {
		if s := e.of(r); r != e.config.Rank && !s.cameTo(o) {
			l.Absent = append(l.Absent, Absent{Rank: r, Calls: s.next, Last: s.last.String(), Silent: !s.heard})
		}
	}
	l.Waiting = e.waitingFor(o)
	return l
}

// cameTo reports whether a process has begun a call, as far as is known.
func (s *status) cameTo(o *op) bool {
	if o.pact != nil {
		return s.agreements > int(o.pact.number)
	}
	return s.next > o.number
}

// waitingFor returns the ranks whose messages a call waits for now.
func (e *Engine) waitingFor(o *op) (ranks []int) {
	waiting := make([]bool, e.config.Size)
	for k, s := range o.box {
		if s.wait != nil {
			waiting[e.owner(k.from)] = true
		}
	}
	if o.pact != nil && !o.pact.counts {
		e.pactWaitsFor(o.pact, waiting)
	}
	for _, r := range e.members() {
		if waiting[r] {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
