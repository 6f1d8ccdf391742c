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
func (p Place) Revoke() {
	e := p.at
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revoke(e.config.Rank)
}

// revoke takes in that a rank has revoked the world.
func (e *Engine) revoke(by int) {
	if e.revokedBy >= 0 || e.err != nil {
		return
	}
	e.revokedBy, e.strayed = by, true
	for number, o := range e.ops {
		switch {
		case o.call == nil:
			o.end(errPast)
			delete(e.ops, number) // an Agree may get that number
		case !o.call.signature.kind.repairs():
			o.end(e.revocationOf(number, o.call.signature))
			e.letGo(o)
		}
	}
	e.moved.give()
	e.tellRevocation()
}

// tellRevocation tells everybody of it: who has revoked does, and nothing is lost
// between two who live. When that one is gone, whoever knows tells, and whoever
// learns of it then.
func (e *Engine) tellRevocation() {
	if e.revokedBy < 0 || e.revokedBy != e.config.Rank && slices.Contains(e.members(), e.revokedBy) {
		return
	}
	h := head{what: revocation, from: e.revokedBy, view: uint32(e.view), floor: e.floor}
	e.clerk.tell(errand{everybody, h.bytes(), nil})
}

// revocationOf is the error of a call.
func (e *Engine) revocationOf(number uint64, s signature) error {
	return &RevokedError{By: e.revokedBy, View: e.view, Call: number, What: s.String()}
}

// apart reports whether a call's number means nothing to others: an Agree or a
// Shrink of a process whose calls have ended otherwise than theirs.
func (e *Engine) apart(o *op) bool {
	return e.strayed && o.call != nil && o.call.signature.kind.repairs()
}
