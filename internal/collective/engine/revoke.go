package engine

import "slices"

// revoke takes in that a rank has revoked the communicator.
func (e *Engine) revoke(by int) {
	if e.revokedBy >= 0 || e.err != nil {
		return
	}
	e.revokedBy, e.diverged = by, true
	for number, o := range e.calls.byNumber {
		switch {
		case o.local == nil:
			o.end(errFinishedByAll)
			delete(e.calls.byNumber, number) // an Agree may get that number
		case !o.local.signature.Kind.repairs():
			o.end(e.revokedError(number, o.local.signature))
			e.dropEntries(o)
		}
	}
	e.log.advanced.Notify()
	e.sendRevocation()
}

// sendRevocation tells all processes of the revocation. The process that has revoked
// does, because no message is lost between two live processes. Once it has failed, every
// process that knows of the revocation tells the others.
func (e *Engine) sendRevocation() {
	if e.revokedBy < 0 || e.revokedBy != e.config.Rank && slices.Contains(e.peers.members(), e.revokedBy) {
		return
	}
	r := revocationNotice{by: e.revokedBy, view: uint32(e.peers.view), lowWater: e.log.lowWater}
	e.sender.enqueue(outMsg{everyOther, r.bytes(), nil})
}

// revokedError is the error of a call in a revoked communicator.
func (e *Engine) revokedError(number uint64, s Signature) error {
	return &RevokedError{By: e.revokedBy, View: e.peers.view, Call: number, What: s.String()}
}

// numberDiverged reports whether a call's number means nothing to other processes: an
// Agree or a Shrink of a process whose calls may have ended differently from theirs.
func (e *Engine) numberDiverged(o *callState) bool {
	return e.diverged && o.local != nil && o.local.signature.Kind.repairs()
}
