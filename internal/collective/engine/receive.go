package engine

import (
	"cmp"
	"fmt"
)

// Receive handles a message of another member. The engine owns its memory from then on.
// Receive does not block. It returns an error if the message is malformed.
func (e *Engine) Receive(from int, message []byte) error {
	if len(message) < contextIDSize || msgType(message[0]) != typeNested {
		return e.receive(from, message)
	}
	n := e.comms.registry.lookup(message)
	if n == nil {
		return e.receiveUnknown(from, message)
	}
	rank, ok := n.rankOfWorld(from)
	if !ok {
		return fmt.Errorf("%w: rank %d is not in that communicator", ErrMessage, from)
	}
	return n.receive(rank, message[contextIDSize:])
}

// receiveUnknown handles a message of a communicator that is not derived here yet. No
// process waits for an answer before it is, but a process that waits to be admitted learns
// of it.
func (e *Engine) receiveUnknown(from int, message []byte) error {
	h, body, err := parseHeader(message[contextIDSize:], e.config.Size)
	if err != nil || h.msgType != typeGeneration {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.handleNotice(from, contextIDOf(message), &h, body)
}

// receive handles a message of this very communicator.
func (e *Engine) receive(from int, message []byte) error {
	h, body, err := parseHeader(message, e.config.Size)
	if err != nil || from < 0 || from >= e.config.Size {
		return fmt.Errorf("%w, from rank %d", cmp.Or(err, ErrMessage), from)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch h.msgType {
	case typeProgress, typeProgressRequest:
		p, err := h.progressReport(body)
		if err != nil {
			return fmt.Errorf("%w: %w, from rank %d", ErrMessage, err, from)
		}
		e.handleProgress(from, &p)
		return nil
	case typeGeneration:
		return e.handleNotice(from, 0, &h, body)
	case typeRevocation:
		e.revoke(h.from)
		return nil
	case typeVote, typeAccept, typeAccepted, typeCommit:
		return e.handleAgreement(from, &h, body)
	case typeAbort:
		if len(body) > 0 && body[0] == reasonDiverged {
			return e.handleDivergence(from, &h, body)
		}
		if h.signature.Kind.repairs() {
			return e.handleAgreementAbort(from, &h, body)
		}
	}
	if e.revokedBy >= 0 {
		return nil // the call has ended here
	}
	if h.call >= e.numberLimit() {
		return fmt.Errorf("%w: rank %d is at call %d, this one at %d", ErrMessage, from, h.call, e.calls.returned)
	}
	e.trimLog(h.lowWater)
	if h.msgType == typeQuery {
		e.handleQuery(from, h.call)
		return nil
	}
	if h.call < e.log.lowWater {
		return nil // a duplicate: every process has finished the call
	}
	o := e.call(h.call)
	if h.msgType == typeAbort {
		return e.handleAbort(o, from, &h, body)
	}
	m := h.taskMessage()
	e.handleMessage(o, from, &m, Payload{body, e.pool.wrap(message)})
	return nil
}

// numberLimit is beyond the call numbers that a correct process can have reached.
func (e *Engine) numberLimit() uint64 { return e.calls.returned + 2*uint64(e.config.KeepCalls) }

// handleMessage handles a message between tasks.
func (e *Engine) handleMessage(o *callState, from int, m *taskMessage, p Payload) {
	if !e.matches(o, from, m.call, m.signature) {
		return
	}
	o.finishedByAll = min(o.finishedByAll, m.finishedByAll)
	o.mixedViews = o.mixedViews || o.view != m.view
	e.put(o, m.envelope, m.signature, p)
}

// matches notes that a process has come to a call, and reports whether it has called
// what this one has. If this process has not made the call yet, begin compares later.
func (e *Engine) matches(o *callState, from int, call uint64, s Signature) bool {
	peer := e.peers.of(from)
	peer.heard, peer.silent = true, false
	if call >= peer.next {
		peer.next, peer.last = call+1, s
	}
	switch {
	case o.firstFrom < 0:
		o.firstFrom, o.firstSig = from, s
	case o.firstSig != s && o.oddFrom < 0:
		o.oddFrom, o.oddSig = from, s
	}
	if o.local != nil && o.local.signature != s {
		e.mismatch(o, from, s)
		return false
	}
	return true
}

// mismatch fails a call that another process has called differently.
func (e *Engine) mismatch(o *callState, other int, called Signature) {
	if e.numberDiverged(o) {
		return
	}
	err := e.mismatchError(o, other, called)
	e.noteMismatch(o, err)
	e.fail(o, err, true)
}

func (e *Engine) mismatchError(o *callState, other int, called Signature) error {
	m := &MismatchError{
		Call: o.number, Rank: e.config.Rank, What: o.local.signature.String(),
		Other: other, OtherWhat: called.String(),
	}
	if m.What == m.OtherWhat { // they differ in what a signature has only a hash of
		m.What += o.local.signature.detailText(e.selection)
		m.OtherWhat += called.detailText(e.selection)
	}
	return m
}

// noteMismatch keeps a mismatch. A process that has found one is about to exit, and calls
// that fail because of that are to tell the reason. If the call has returned here, the next
// one tells it.
func (e *Engine) noteMismatch(o *callState, err error) {
	m, ok := err.(*MismatchError)
	if !ok {
		return
	}
	e.calls.mismatch = m
	if o != nil && o.returned && o.err == nil {
		e.calls.missed = m
	}
}

// sendAbort tells the other processes that a call has failed.
func (e *Engine) sendAbort(o *callState, err error) {
	a := abortNotice{call: o.number, agreement: o.agreementNumber(), lowWater: e.log.lowWater, err: err}
	if e.numberDiverged(o) {
		a.call = unnumbered
	}
	if o.local != nil {
		a.signature = o.local.signature
	}
	head, body := a.bytes()
	e.sender.enqueue(outMsg{everyOther, head, body})
}

// handleAbort fails a call that has failed on another process.
func (e *Engine) handleAbort(o *callState, from int, h *header, body []byte) error {
	a, err := h.abortNotice(from, body)
	if err == nil && !e.numberDiverged(o) {
		e.noteMismatch(o, a.err)
		e.fail(o, a.err, false)
	}
	return err
}
