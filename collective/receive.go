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
	h, body, err := parse(message, e.config.Size)
	if err != nil || from < 0 || from >= e.config.Size {
		return fmt.Errorf("%w, from rank %d", cmp.Or(err, ErrMessage), from)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.what == news || h.what == question {
		e.hearNews(from, &h)
		if h.what == question {
			e.clerk.reply(from)
		}
		return nil
	}
	if h.number >= e.returned+2*uint64(e.config.KeepCalls) {
		return fmt.Errorf("%w: rank %d is at call %d, this one at %d", ErrMessage, from, h.number, e.returned)
	}
	e.raise(h.floor)
	if h.number < e.floor {
		return nil // a copy: everybody is through with it
	}
	o := e.at(h.number)
	switch h.what {
	case abort:
		return e.hearAbort(o, from, &h, body)
	case letter:
		e.hearLetter(o, from, &h, body)
		return nil
	}
	return e.hearAgreement(o, from, &h, body)
}

// hearLetter takes a letter in.
func (e *Engine) hearLetter(o *op, from int, h *head, body []byte) {
	if !e.matches(o, from, h) {
		return
	}
	o.low = min(o.low, h.low)
	o.several = o.several || o.view != h.view
	o.put(key{h.step, h.from, h.to}, body)
}

// matches notes that a process has come to a call, and reports whether it has
// called what this one has. If this one is yet to come, that is seen then.
func (e *Engine) matches(o *op, from int, h *head) bool {
	s := &e.heard[from]
	if s.heard = true; h.number >= s.next {
		s.next, s.last = h.number+1, h.signature
	}
	if o.witness < 0 {
		o.witness, o.witnessed = from, h.signature
	}
	if o.call != nil && o.call.signature != h.signature {
		e.mismatch(o, from, h.signature)
		return false
	}
	return true
}

// mismatch ends a call that others have called differently.
func (e *Engine) mismatch(o *op, other int, called signature) {
	e.fail(o, &MismatchError{
		Call: o.number, Rank: e.config.Rank, What: o.call.signature.String(),
		Other: other, OtherWhat: called.String(),
	}, true)
}

// Reasons in a notice of failure.
const (
	becauseMismatch = iota + 1
	becauseOther
)

// obituary tells the others of a call that has failed.
func (e *Engine) obituary(o *op, err error) errand {
	h := head{what: abort, number: o.number, floor: e.floor}
	if o.call != nil {
		h.signature = o.call.signature
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
	return errand{everybody, h.bytes(), body}
}

// hearAbort takes in that a call has failed elsewhere.
func (e *Engine) hearAbort(o *op, from int, h *head, body []byte) error {
	d := wire.NewDecoder(body)
	var err error
	switch because := d.Uint8(); because {
	case becauseMismatch:
		err = &MismatchError{
			Call: h.number, Rank: int(d.Uint32()), What: string(d.Bytes()),
			Other: int(d.Uint32()), OtherWhat: string(d.Bytes()),
		}
	case becauseOther:
		err = &AbortError{Call: h.number, What: h.signature.String(), Rank: from, Reason: string(d.Bytes())}
	default:
		return fmt.Errorf("%w: a call failed for reason %d, says rank %d", ErrMessage, because, from)
	}
	if bad := d.Finish(); bad != nil {
		return fmt.Errorf("%w: %w, from rank %d", ErrMessage, bad, from)
	}
	e.fail(o, err, false)
	return nil
}
