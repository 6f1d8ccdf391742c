package collective

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/wire"
)

// Receive takes a message of another member, whose memory is the engine's from
// then on. It does not wait. An error says that the message made no sense.
func (e *Engine) Receive(from int, message []byte) error {
	if len(message) < contextIDSize || msgType(message[0]) != typeNested {
		return e.receive(from, message)
	}
	w := e.registry.lookup(message)
	if w == nil {
		return nil // it is not made here yet: nobody waits for an answer before it is
	}
	rank, ok := w.rankOfWorld(from)
	if !ok {
		return fmt.Errorf("%w: rank %d is not in that world", ErrMessage, from)
	}
	return w.receive(rank, message[contextIDSize:])
}

// receive takes a message of this very world.
func (e *Engine) receive(from int, message []byte) error {
	h, body, err := parse(message, e.config.Size)
	if err != nil || from < 0 || from >= e.config.Size {
		return fmt.Errorf("%w, from rank %d", cmp.Or(err, ErrMessage), from)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.msgType == typeProgress || h.msgType == typeProgressRequest {
		e.handleProgress(from, &h)
		if h.msgType == typeProgressRequest {
			e.sender.reply(from)
		}
		return nil
	}
	switch {
	case h.msgType == typeRevocation:
		e.revoke(h.from)
		return nil
	case h.msgType >= typeVote && h.msgType <= typeCommit:
		return e.handleAgreement(from, &h, body)
	case h.msgType == typeAbort && h.signature.kind.repairs():
		return e.handleAgreementAbort(from, &h, body)
	case e.revokedBy >= 0:
		return nil // it has been ended here
	}
	if h.number >= e.returned+2*uint64(e.config.KeepCalls) {
		return fmt.Errorf("%w: rank %d is at call %d, this one at %d", ErrMessage, from, h.number, e.returned)
	}
	e.trimLog(h.lowWater)
	if h.number < e.lowWater {
		return nil // a copy: everybody is through with it
	}
	o := e.at(h.number)
	switch h.msgType {
	case typeAbort:
		return e.handleAbort(o, from, &h, body)
	default:
		e.handleMessage(o, from, &h, payload{body, e.pool.wrap(message)})
		return nil
	}
}

// hearLetter takes a letter in.
func (e *Engine) handleMessage(o *callState, from int, h *header, p payload) {
	if !e.matches(o, from, h) {
		return
	}
	o.piggyback = min(o.piggyback, h.piggyback)
	o.mixedViews = o.mixedViews || o.view != h.view
	o.put(envelope{h.step, h.from, h.to}, p)
}

// matches notes that a process has come to a call, and reports whether it has
// called what this one has. If this one is yet to come, that is seen then.
func (e *Engine) matches(o *callState, from int, h *header) bool {
	s := e.peer(from)
	if s.heard = true; h.number >= s.next {
		s.next, s.last = h.number+1, h.signature
	}
	if o.firstFrom < 0 {
		o.firstFrom, o.firstSig = from, h.signature
	}
	if o.local != nil && o.local.signature != h.signature {
		e.mismatch(o, from, h.signature)
		return false
	}
	return true
}

// mismatch ends a call that others have called differently.
func (e *Engine) mismatch(o *callState, other int, called signature) {
	if e.numberDiverged(o) {
		return
	}
	e.fail(o, &MismatchError{
		Call: o.number, Rank: e.config.Rank, What: o.local.signature.String(),
		Other: other, OtherWhat: called.String(),
	}, true)
}

// Reasons in a notice of failure.
const (
	becauseMismatch = iota + 1
	becauseOther
)

// obituary tells the others of a call that has failed.
func (e *Engine) abortNotice(o *callState, err error) outMsg {
	h := header{msgType: typeAbort, number: o.number, lowWater: e.lowWater}
	if o.agreement != nil {
		h.piggyback = o.agreement.number + 1
	}
	if e.numberDiverged(o) {
		h.number = unnumbered
	}
	if o.local != nil {
		h.signature = o.local.signature
	}
	var body []byte
	var m *MismatchError
	if errors.As(err, &m) {
		body = wire.AppendUint8(body, becauseMismatch)
		body = wire.AppendUint32(body, uint32(m.Rank))
		body = wire.AppendBytes(body, []byte(m.What))
		body = wire.AppendUint32(body, uint32(m.Other))
		body = wire.AppendBytes(body, []byte(m.OtherWhat))
	} else {
		body = wire.AppendUint8(body, becauseOther)
		body = wire.AppendBytes(body, []byte(err.Error()))
	}
	return outMsg{everybody, h.bytes(), body}
}

// hearAbort takes in that a call has failed elsewhere.
func (e *Engine) handleAbort(o *callState, from int, h *header, body []byte) error {
	err, bad := parseAbort(from, h, body)
	if bad == nil && !e.numberDiverged(o) {
		e.fail(o, err, false)
	}
	return bad
}

// parseAbort reads why a call has failed elsewhere.
func parseAbort(from int, h *header, body []byte) (err, bad error) {
	d := wire.NewDecoder(body)
	switch because := d.Uint8(); because {
	case becauseMismatch:
		err = &MismatchError{
			Call: h.number, Rank: int(d.Uint32()), What: string(d.Bytes()),
			Other: int(d.Uint32()), OtherWhat: string(d.Bytes()),
		}
	case becauseOther:
		err = &AbortError{Call: h.number, What: h.signature.String(), Rank: from, Reason: string(d.Bytes())}
	default:
		return nil, fmt.Errorf("%w: a call failed for reason %d, says rank %d", ErrMessage, because, from)
	}
	if bad := d.Finish(); bad != nil {
		return nil, fmt.Errorf("%w: %w, from rank %d", ErrMessage, bad, from)
	}
	return err, nil
}
