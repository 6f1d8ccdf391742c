package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// A message begins with a header of fixed size. Each type of message has a struct of
// its own, below, which says what it keeps in the header and in the body behind it.

// msgType is the type of a message.
type msgType uint8

const (
	typeMessage         msgType = iota + 1 // from task to task
	typeProgress                           // the sender's progress
	typeProgressRequest                    // the sender's progress, and a request for the receiver's
	typeAbort                              // a call has failed
	typeVote                               // the four phases of an agreement
	typeAccept
	typeAccepted
	typeCommit
	typeRevocation // the communicator is revoked
	typeQuery      // a taken-over task waits for the receiver's messages
	typeNested     // stands in front of a message of a nested communicator
	typeGeneration // tells a process that waits of a generation
)

// ErrMessage is wrapped by every error about a malformed message.
var ErrMessage = errors.New("collective: message makes no sense")

// headerSize is a multiple of eight, so that numbers behind a header are aligned.
const headerSize = 64

// header is the fixed part of every message. What call, from, to, step and count mean
// depends on the type; types leave at zero what they do not need.
//
// Layout, big endian: type 1, kind 1, element 1, failure mode 1, root 4, call 8,
// length 8, from 4, to 4, step 4, view 4, count 8, low-water mark 8, detail 8.
type header struct {
	msgType        msgType
	signature      Signature
	call           uint64
	from, to, step int
	view           uint32 // the sender's; its low 32 bits are enough
	count          uint64
	lowWater       uint64 // the sender's low-water mark
}

func (h *header) append(b []byte) []byte {
	b = append(b, byte(h.msgType), byte(h.signature.Kind), h.signature.Element, byte(h.signature.Mode))
	b = binary.BigEndian.AppendUint32(b, uint32(h.signature.Root))
	b = binary.BigEndian.AppendUint64(b, h.call)
	b = binary.BigEndian.AppendUint64(b, uint64(h.signature.Length))
	b = binary.BigEndian.AppendUint32(b, uint32(h.from))
	b = binary.BigEndian.AppendUint32(b, uint32(h.to))
	b = binary.BigEndian.AppendUint32(b, uint32(h.step))
	b = binary.BigEndian.AppendUint32(b, h.view)
	b = binary.BigEndian.AppendUint64(b, h.count)
	b = binary.BigEndian.AppendUint64(b, h.lowWater)
	return binary.BigEndian.AppendUint64(b, h.signature.Detail)
}

func (h *header) bytes() []byte { return h.append(make([]byte, 0, headerSize)) }

// parseHeader reads the header of a message between tasks tasks.
func parseHeader(b []byte, tasks int) (h header, body []byte, err error) {
	if len(b) < headerSize {
		return h, nil, fmt.Errorf("%w: %d bytes are too few", ErrMessage, len(b))
	}
	h = header{
		msgType: msgType(b[0]),
		signature: Signature{
			Kind: Kind(b[1]), Element: b[2], Mode: FailureMode(b[3]),
			Root:   int(int32(binary.BigEndian.Uint32(b[4:]))),
			Length: int64(binary.BigEndian.Uint64(b[16:])),
			Detail: binary.BigEndian.Uint64(b[56:]),
		},
		call:     binary.BigEndian.Uint64(b[8:]),
		from:     int(binary.BigEndian.Uint32(b[24:])),
		to:       int(binary.BigEndian.Uint32(b[28:])),
		step:     int(binary.BigEndian.Uint32(b[32:])),
		view:     binary.BigEndian.Uint32(b[36:]),
		count:    binary.BigEndian.Uint64(b[40:]),
		lowWater: binary.BigEndian.Uint64(b[48:]),
	}
	switch {
	case h.msgType < typeMessage || h.msgType == typeNested || h.msgType > typeGeneration:
		return h, nil, fmt.Errorf("%w: it is of type %d", ErrMessage, h.msgType)
	case h.from >= tasks || h.to >= tasks:
		return h, nil, fmt.Errorf("%w: from task %d to %d, of %d", ErrMessage, h.from, h.to, tasks)
	}
	return h, b[headerSize:], nil
}

// taskMessage carries an algorithm's message from one task to another. The payload
// follows it.
type taskMessage struct {
	signature Signature
	call      uint64
	envelope  envelope
	view      uint32
	// finishedByAll is piggybacked: in the sender's view, all processes that this
	// message depends on have finished the calls before it.
	finishedByAll uint64
	lowWater      uint64
}

func (m *taskMessage) append(b []byte) []byte {
	h := header{
		msgType: typeMessage, signature: m.signature, call: m.call, view: m.view,
		from: m.envelope.from, to: m.envelope.to, step: m.envelope.step,
		count: m.finishedByAll, lowWater: m.lowWater,
	}
	return h.append(b)
}

func (h *header) taskMessage() taskMessage {
	return taskMessage{
		signature: h.signature, call: h.call, view: h.view,
		envelope: envelope{h.step, h.from, h.to}, finishedByAll: h.count, lowWater: h.lowWater,
	}
}

// progressReport says how far its sender has come.
//
// Body: if the sender holds, the first held call 8.
type progressReport struct {
	request    bool // the receiver is to report, too
	last       Signature
	next       uint64 // number of the sender's next call
	agreements int    // begun
	view       uint32
	finished   uint64 // calls
	lowWater   uint64
	holds      bool
	firstHeld  uint64
}

func (p *progressReport) bytes() (head, body []byte) {
	h := header{
		msgType: typeProgress, signature: p.last, call: p.next, step: p.agreements,
		view: p.view, count: p.finished, lowWater: p.lowWater,
	}
	if p.request {
		h.msgType = typeProgressRequest
	}
	if p.holds {
		body = wire.AppendUint64(body, p.firstHeld)
	}
	return h.bytes(), body
}

func (h *header) progressReport(body []byte) (progressReport, error) {
	p := progressReport{
		request: h.msgType == typeProgressRequest, last: h.signature, next: h.call,
		agreements: h.step, view: h.view, finished: h.count, lowWater: h.lowWater,
	}
	if len(body) == 0 {
		return p, nil
	}
	d := wire.NewDecoder(body)
	p.holds, p.firstHeld = true, d.Uint64()
	return p, d.Finish()
}

// query asks whether messages of the receiver's in a call are still to come.
type query struct {
	call     uint64
	view     uint32
	lowWater uint64
}

func (q *query) bytes() []byte {
	h := header{msgType: typeQuery, call: q.call, view: q.view, lowWater: q.lowWater}
	return h.bytes()
}

// revocationNotice says that a rank has revoked the communicator.
type revocationNotice struct {
	by       int
	view     uint32
	lowWater uint64
}

func (r *revocationNotice) bytes() []byte {
	h := header{msgType: typeRevocation, from: r.by, view: r.view, lowWater: r.lowWater}
	return h.bytes()
}

// generationNotice tells a process that waits to be admitted of a generation of the job, or
// of another process that waits.
//
// Body: for each member rank 4, incarnation 8.
type generationNotice struct {
	what    int
	view    uint64 // the generation's first; the sender's incarnation if it waits
	before  uint64 // the first one of the generation before
	members []Member
}

// What a generationNotice tells.
const (
	generationBegun = iota
	waitsToo        // the sender waits to be admitted
	jobOver
)

func (n *generationNotice) bytes() (head, body []byte) {
	h := header{msgType: typeGeneration, step: n.what, call: n.view, count: n.before}
	for _, m := range n.members {
		body = wire.AppendUint64(wire.AppendUint32(body, uint32(m.Rank)), m.Incarnation)
	}
	return h.bytes(), body
}

func (h *header) generationNotice(body []byte, size int) (generationNotice, error) {
	n := generationNotice{what: h.step, view: h.call, before: h.count}
	d := wire.NewDecoder(body)
	for d.Left() > 0 && d.Err() == nil {
		m := Member{int(d.Uint32()), d.Uint64()}
		if m.Rank >= size || len(n.members) > 0 && m.Rank <= n.members[len(n.members)-1].Rank || m.Incarnation > n.view {
			return n, fmt.Errorf("rank %d, incarnation %d, of view %d", m.Rank, m.Incarnation, n.view)
		}
		n.members = append(n.members, m)
	}
	return n, d.Finish()
}

// agreementMessage is one phase of an agreement.
//
// Body: number 8, value 8, acknowledged view 8, proposal's view 8, accepted 1.
type agreementMessage struct {
	phase     msgType
	signature Signature
	call      uint64 // the sender's call number, or unnumbered
	lowWater  uint64
	number    uint64 // of the agreement
	vote      vote
}

func (m *agreementMessage) bytes() (head, body []byte) {
	h := header{msgType: m.phase, signature: m.signature, call: m.call, view: m.vote.view, lowWater: m.lowWater}
	p := &m.vote.proposal
	for _, v := range []uint64{m.number, p.value, p.acked, p.view} {
		body = wire.AppendUint64(body, v)
	}
	accepted := uint8(0)
	if m.vote.accepted {
		accepted = 1
	}
	return h.bytes(), wire.AppendUint8(body, accepted)
}

func (h *header) agreementMessage(body []byte) (agreementMessage, error) {
	d := wire.NewDecoder(body)
	m := agreementMessage{phase: h.msgType, signature: h.signature, call: h.call, lowWater: h.lowWater, number: d.Uint64()}
	m.vote = vote{view: h.view, proposal: proposal{d.Uint64(), d.Uint64(), d.Uint64()}, accepted: d.Uint8() != 0}
	return m, d.Finish()
}

// abortNotice says that a call has failed on its sender, and why.
//
// Body: reason 1, then for a mismatch rank 4, what, other rank 4, what; for a divergence
// what, view 8, task 4, owner 4, rank 4; for a hold what, view 8, rank 4, holder 4, first
// call 8, bytes 8, most calls 8, most bytes 8; and for every other reason its text.
type abortNotice struct {
	signature Signature
	call      uint64 // or unnumbered
	agreement uint64 // which Agree or Shrink it is, from 1; 0: none
	lowWater  uint64
	// err is a *MismatchError, a *DivergedError or a *HoldError. Any other is sent as its text, and is
	// an *AbortError when received. An *AbortError is relayed: the header's step is relayedAbort, and
	// its from is the rank where the call has failed.
	err error
}

// Reasons in an abort notice.
const (
	reasonMismatch = iota + 1
	reasonOther
	reasonDiverged
	reasonHold
)

// relayedAbort is the step in the header of an abort notice that is sent on for a process that has failed.
const relayedAbort = 1

func (a *abortNotice) bytes() (head, body []byte) {
	h := header{msgType: typeAbort, signature: a.signature, call: a.call, count: a.agreement, lowWater: a.lowWater}
	var m *MismatchError
	var v *DivergedError
	var l *HoldError
	var r *AbortError
	switch {
	case errors.As(a.err, &r):
		h.step, h.from = relayedAbort, r.Rank
		body = wire.AppendUint8(body, reasonOther)
		body = wire.AppendBytes(body, []byte(r.Reason))
	case errors.As(a.err, &l):
		body = wire.AppendUint8(body, reasonHold)
		body = wire.AppendBytes(body, []byte(l.What))
		body = wire.AppendUint64(body, l.View)
		body = wire.AppendUint32(body, uint32(l.Rank))
		body = wire.AppendUint32(body, uint32(l.Holder))
		for _, n := range []uint64{l.First, uint64(l.Bytes), uint64(l.MaxCalls), uint64(l.MaxBytes)} {
			body = wire.AppendUint64(body, n)
		}
	case errors.As(a.err, &v):
		body = wire.AppendUint8(body, reasonDiverged)
		body = wire.AppendBytes(body, []byte(v.What))
		body = wire.AppendUint64(body, v.View)
		for _, n := range []int{v.Task, v.Owner, v.Rank} {
			body = wire.AppendUint32(body, uint32(n))
		}
	case errors.As(a.err, &m):
		body = wire.AppendUint8(body, reasonMismatch)
		body = wire.AppendUint32(body, uint32(m.Rank))
		body = wire.AppendBytes(body, []byte(m.What))
		body = wire.AppendUint32(body, uint32(m.Other))
		body = wire.AppendBytes(body, []byte(m.OtherWhat))
	default:
		body = wire.AppendUint8(body, reasonOther)
		body = wire.AppendBytes(body, []byte(a.err.Error()))
	}
	return h.bytes(), body
}

func (h *header) abortNotice(from int, body []byte) (abortNotice, error) {
	a := abortNotice{signature: h.signature, call: h.call, agreement: h.count, lowWater: h.lowWater}
	d := wire.NewDecoder(body)
	switch reason := d.Uint8(); reason {
	case reasonMismatch:
		a.err = &MismatchError{
			Call: h.call, Rank: int(d.Uint32()), What: string(d.Bytes()),
			Other: int(d.Uint32()), OtherWhat: string(d.Bytes()),
		}
	case reasonDiverged:
		a.err = &DivergedError{
			Call: h.call, What: string(d.Bytes()), View: d.Uint64(),
			Task: int(d.Uint32()), Owner: int(d.Uint32()), Rank: int(d.Uint32()),
		}
	case reasonHold:
		a.err = &HoldError{
			Call: h.call, What: string(d.Bytes()), View: d.Uint64(), Rank: int(d.Uint32()), Holder: int(d.Uint32()),
			First: d.Uint64(), Bytes: int(d.Uint64()), MaxCalls: int(d.Uint64()), MaxBytes: int(d.Uint64()),
		}
	case reasonOther:
		if h.step == relayedAbort {
			from = h.from
		}
		a.err = &AbortError{Call: h.call, What: h.signature.String(), Rank: from, Reason: string(d.Bytes())}
	default:
		return a, fmt.Errorf("%w: a call failed for reason %d, says rank %d", ErrMessage, reason, from)
	}
	if err := d.Finish(); err != nil {
		return a, fmt.Errorf("%w: %w, from rank %d", ErrMessage, err, from)
	}
	return a, nil
}
