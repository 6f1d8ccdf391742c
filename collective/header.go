package collective

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// what a message is.
type msgType uint8

const (
	// letter is from one task to another, in a call.
	typeMessage msgType = iota + 1
	// news says how far a process has come; question asks for news, too.
	typeProgress
	typeProgressRequest
	// abort says that a call has failed, and why.
	typeAbort
	// vote, store, stored and commit are about what is agreed on: see pact.go.
	typeVote
	typeAccept
	typeAccepted
	typeCommit
	// revocation says that the world has been revoked.
	typeRevocation
	// within stands in front of a message of a world that Shrink has made.
	typeNested
)

// headSize is a multiple of eight, so that numbers behind a head are aligned.
const headerSize = 64

// head is what every message begins with.
//
// Layout, big endian: what 1, kind 1, element 1, strength 1, root 4, call 8,
// length 8, from 4, to 4, step 4, view 4, low 8, floor 8, detail 8.
type header struct {
	msgType   msgType
	signature signature // of the call; of the sender's last one in news
	// number is the call's; in news, that of the next one.
	number   uint64
	from, to int // tasks; in a revocation, from is who has revoked
	// step is the letter's; in news, how many agreements the sender has begun.
	step int
	view uint32 // the sender's, of which 32 bits are enough
	// low: in the sender's view, all processes whose part this follows from had
	// finished the calls before it. In news: the sender has. In an abort of an
	// Agree or a Shrink: which one, plus one. floor: everybody has.
	piggyback, lowWater uint64
}

// ErrMessage is what every error about a message that makes no sense wraps.
var ErrMessage = errors.New("collective: message makes no sense")

func (h *header) bytes() []byte { return h.append(make([]byte, 0, headerSize)) }

func (h *header) append(b []byte) []byte {
	b = append(b, byte(h.msgType), byte(h.signature.kind), h.signature.element, byte(h.signature.failureMode))
	b = binary.BigEndian.AppendUint32(b, uint32(h.signature.root))
	b = binary.BigEndian.AppendUint64(b, h.number)
	b = binary.BigEndian.AppendUint64(b, uint64(h.signature.length))
	b = binary.BigEndian.AppendUint32(b, uint32(h.from))
	b = binary.BigEndian.AppendUint32(b, uint32(h.to))
	b = binary.BigEndian.AppendUint32(b, uint32(h.step))
	b = binary.BigEndian.AppendUint32(b, h.view)
	b = binary.BigEndian.AppendUint64(b, h.piggyback)
	b = binary.BigEndian.AppendUint64(b, h.lowWater)
	return binary.BigEndian.AppendUint64(b, h.signature.detail)
}

// parse reads a message in a world of some tasks.
func parse(b []byte, tasks int) (h header, body []byte, err error) {
	if len(b) < headerSize {
		return h, nil, fmt.Errorf("%w: %d bytes are too few", ErrMessage, len(b))
	}
	h = header{
		msgType: msgType(b[0]),
		signature: signature{
			kind: kind(b[1]), element: b[2], failureMode: failureMode(b[3]),
			root:   int(int32(binary.BigEndian.Uint32(b[4:]))),
			length: int64(binary.BigEndian.Uint64(b[16:])),
			detail: binary.BigEndian.Uint64(b[56:]),
		},
		number:    binary.BigEndian.Uint64(b[8:]),
		from:      int(binary.BigEndian.Uint32(b[24:])),
		to:        int(binary.BigEndian.Uint32(b[28:])),
		step:      int(binary.BigEndian.Uint32(b[32:])),
		view:      binary.BigEndian.Uint32(b[36:]),
		piggyback: binary.BigEndian.Uint64(b[40:]),
		lowWater:  binary.BigEndian.Uint64(b[48:]),
	}
	switch {
	case h.msgType < typeMessage || h.msgType >= typeNested:
		return h, nil, fmt.Errorf("%w: it is of sort %d", ErrMessage, h.msgType)
	case h.from >= tasks || h.to >= tasks:
		return h, nil, fmt.Errorf("%w: from task %d to %d, of %d", ErrMessage, h.from, h.to, tasks)
	}
	return h, b[headerSize:], nil
}
