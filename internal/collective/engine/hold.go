package engine

// What a process has received dies with it, and can be had again only from the logs of the
// senders. The low-water mark lets these go when every process has finished a call, although
// the result of a finished call may be needed for long: by the work between two calls, whose
// outcome is the input of the next one.
//
// A process that holds does not count the calls since then as finished. So no process raises
// the low-water mark above the first of them, and no message is needed to say so. When the
// process dies, the owner of its tasks has not finished these calls either, until it has run
// their parts.
//
// The calls of a hold are finished all at once, also after it was released. Otherwise the
// low-water mark might come to stand between two of them, and a process that takes over a
// task then could restore the input of the second call only with the result of the first,
// which is gone.

import (
	"math"
	"slices"
	"sync"
)

// heldCalls are the calls of one hold, from first to before end.
type heldCalls struct{ first, end uint64 }

// notReleased is the end of a hold that has not been released.
const notReleased = math.MaxUint64

// holds are those whose calls are not below the low-water mark.
type holds []heldCalls

// finished returns how many of the completed calls are finished: those before a hold that is
// not completed as a whole.
func (h holds) finished(completed uint64) uint64 {
	for i := 0; i < len(h); i++ {
		if h[i].first < completed && completed < h[i].end {
			completed, i = h[i].first, -1 // which another hold may have, too
		}
	}
	return completed
}

// first returns the first call that is held now.
func (h holds) first() (call uint64, held bool) {
	call = notReleased
	for _, one := range h {
		if one.end == notReleased {
			call = min(call, one.first)
		}
	}
	return call, call != notReleased
}

// trim drops the holds of which no call is left.
func (h *holds) trim(lowWater uint64) {
	*h = slices.DeleteFunc(*h, func(one heldCalls) bool { return one.end <= lowWater })
}

// Hold keeps the log of all calls from the next one on, until release is called.
func (c Comm) Hold() (release func()) {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	first := e.calls.next
	e.holds = append(e.holds, heldCalls{first, notReleased})
	for number, o := range e.calls.byNumber {
		if number >= first {
			e.digestFully(o)
		}
	}
	return sync.OnceFunc(func() { e.release(first) })
}

// release ends a hold.
func (e *Engine) release(first uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.Index(e.holds, heldCalls{first, notReleased})
	e.holds[i].end = e.calls.next
	e.holds.trim(e.log.lowWater)
	e.advance()
	e.updateLowWater()
}

// digestFully has the digests of a call's messages read all of them. The call is yet to be
// made, so the messages that are here already are complete.
func (e *Engine) digestFully(o *callState) {
	o.fullDigests = true
	for _, s := range o.mailbox.all() {
		if s.here {
			s.digest = e.digest(o, o.firstSig, s.payload.Bytes)
		}
	}
}

// holdError returns why a call cannot begin: the log has reached its limits with calls that
// a process holds, so that waiting would not help. It returns nil if no process does.
func (e *Engine) holdError(o *callState, s Signature) error {
	first, _ := e.holds.first()
	holder := e.config.Rank
	for rank, p := range e.peers.status {
		if p.holds && p.firstHeld < first {
			holder, first = rank, p.firstHeld
		}
	}
	if o.number <= first {
		return nil
	}
	bytes := 0
	for n := max(first, e.log.lowWater); n < o.number; n++ {
		if held := e.calls.byNumber[n]; held != nil {
			for _, l := range held.log {
				bytes += l.size()
			}
		}
	}
	if o.number-first < uint64(e.config.KeepCalls) && bytes <= e.config.KeepBytes {
		return nil
	}
	return &HoldError{
		Call: o.number, What: s.String(), View: e.peers.view, Rank: e.config.Rank, Holder: holder, First: first,
		Bytes: bytes, MaxCalls: e.config.KeepCalls, MaxBytes: e.config.KeepBytes,
	}
}

// forgetHolds forgets which processes hold, before they are asked again.
func (p *peers) forgetHolds() {
	for _, s := range p.status {
		s.holds = false
	}
}
