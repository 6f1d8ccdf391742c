package collective

import "slices"

// Revoke ends the world for all: every call that is pending anywhere in it, and
// every later one, ends with a [*RevokedError], but for [Agree] and [Shrink], which
// are what a program does next. So whoever has noticed a failure gets the others
// out of calls in which they would wait for it, though they have noticed nothing.
// Worlds that were made by Shrink before are not concerned.
//
// It is MPI_Comm_revoke of ULFM: one process calls it, without waiting for
// anybody. All who live learn of it, even if that process dies, unless it dies
// before anybody who lives has learned.
func (p Comm) Revoke() {
	e := p.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revoke(e.config.Rank)
}

// revoke takes in that a rank has revoked the world.
func (e *Engine) revoke(by int) {
	if e.revokedBy >= 0 || e.err != nil {
		return
	}
	e.revokedBy, e.diverged = by, true
	for number, o := range e.calls {
		switch {
		case o.local == nil:
			o.end(errPast)
			delete(e.calls, number) // an Agree may get that number
		case !o.local.signature.kind.repairs():
			o.end(e.revokedError(number, o.local.signature))
			e.dropEntries(o)
		}
	}
	e.moved.Notify()
	e.sendRevocation()
}

// tellRevocation tells everybody of it: who has revoked does, and nothing is lost
// between two who live. When that one is gone, whoever knows tells, and whoever
// learns of it then.
func (e *Engine) sendRevocation() {
	if e.revokedBy < 0 || e.revokedBy != e.config.Rank && slices.Contains(e.members(), e.revokedBy) {
		return
	}
	h := header{msgType: typeRevocation, from: e.revokedBy, view: uint32(e.view), lowWater: e.lowWater}
	e.sender.enqueue(outMsg{everybody, h.bytes(), nil})
}

// revocationOf is the error of a call.
func (e *Engine) revokedError(number uint64, s signature) error {
	return &RevokedError{By: e.revokedBy, View: e.view, Call: number, What: s.String()}
}

// apart reports whether a call's number means nothing to others: an Agree or a
// Shrink of a process whose calls have ended otherwise than theirs.
func (e *Engine) numberDiverged(o *callState) bool {
	return e.diverged && o.local != nil && o.local.signature.kind.repairs()
}
