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
type peerStatus struct {
	heard          bool
	down           bool   // nobody is there, says the link
	next, finished uint64 // calls begun, and finished
	agreements     int    // begun
	last           signature
}

// newsHead says how far this process has come.
func (e *Engine) progressHeader(w msgType) []byte {
	h := header{msgType: w, signature: e.last, number: e.next, step: int(e.begun), view: uint32(e.view), piggyback: e.finished, lowWater: e.lowWater}
	return h.bytes()
}

// hearNews takes in how far another process has come.
func (e *Engine) handleProgress(from int, h *header) {
	s := e.peer(from)
	s.heard, s.agreements = true, max(s.agreements, h.step)
	if h.number >= s.next {
		s.next, s.last = h.number, h.signature
	}
	e.trimLog(h.lowWater)
	if h.view == uint32(e.view) {
		s.finished = max(s.finished, h.piggyback)
		e.updateLowWater()
	}
}

// survey finds the floor by what all others have said.
func (e *Engine) updateLowWater() {
	floor := e.finished
	for _, r := range e.members() {
		if r != e.config.Rank {
			floor = min(floor, e.peer(r).finished)
		}
	}
	e.trimLog(floor)
}

// late is the error of a call whose context has ended.
func (e *Engine) timeoutError(o *callState, cause error) error {
	l := &TimeoutError{Call: o.number, What: e.last.String(), View: e.view, Err: cause}
	if o.local != nil {
		l.What = o.local.signature.String()
	}
	for _, r := range e.members() {
		if s := e.peer(r); r != e.config.Rank && !s.cameTo(o) {
			l.Missing = append(l.Missing, Missing{Rank: r, Calls: s.next, Last: s.last.String(), Silent: !s.heard})
		}
	}
	l.Waiting = e.waitingFor(o)
	return l
}

// cameTo reports whether a process has begun a call, as far as is known.
func (s *peerStatus) cameTo(o *callState) bool {
	if o.agreement != nil {
		return s.agreements > int(o.agreement.number)
	}
	return s.next > o.number
}

// waitingFor returns the ranks whose messages a call waits for now.
func (e *Engine) waitingFor(o *callState) (ranks []int) {
	waiting := make([]bool, e.config.Size)
	for k, s := range o.mailbox {
		if s.wait != nil {
			waiting[e.owner(k.from)] = true
		}
	}
	if o.agreement != nil && !o.agreement.decided {
		e.agreementWaitsFor(o.agreement, waiting)
	}
	for _, r := range e.members() {
		if waiting[r] {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
