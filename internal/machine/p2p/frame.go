package p2p

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// FrameType is the first byte of every frame. It tells a driver that carries the
// frames of several protocols that a frame is of this one.
const FrameType = 0x81

// kind is what a frame carries besides its acknowledgment.
type kind uint8

const (
	// ack carries nothing else.
	ack kind = iota + 1
	// data carries a segment of a message.
	data
	// poll asks for an acknowledgment after number segments were sent.
	poll
	// pollReply answers a poll, or reports a gap before number (a NACK).
	pollReply
)

// frame is one frame between two members.
//
// Layout, big endian: type 1, kind 1, flags 1, 1 unused, length of the message 4,
// incarnation of the sender 8, incarnation of the receiver 8, next 8, number 8, then the
// payload.
type frame struct {
	kind        kind
	first, last bool   // the segment begins, and ends, its message
	length      uint32 // of the message, in its first segment
	from, to    uint64 // incarnations, by the view
	next        uint64 // acknowledgment: the first segment that the sender of the frame lacks
	number      uint64 // of the segment, or as the kind says
	payload     []byte
	buffered    []byte // the rest of the payload, in the receive buffer
}

const headSize = 4 + 4 + 8 + 8 + 8 + 8

const (
	flagFirst = 1 << iota
	flagLast
)

// ErrFrame is wrapped by every error about a malformed frame.
var ErrFrame = errors.New("p2p: malformed frame")

// appendHead appends the frame without its payload.
func (f *frame) appendHead(dst []byte) []byte {
	var flags byte
	if f.first {
		flags |= flagFirst
	}
	if f.last {
		flags |= flagLast
	}
	dst = append(dst, FrameType, byte(f.kind), flags, 0)
	dst = binary.BigEndian.AppendUint32(dst, f.length)
	dst = binary.BigEndian.AppendUint64(dst, f.from)
	dst = binary.BigEndian.AppendUint64(dst, f.to)
	dst = binary.BigEndian.AppendUint64(dst, f.next)
	return binary.BigEndian.AppendUint64(dst, f.number)
}

// parse decodes a frame. The payload points into b.
func parse(b []byte) (frame, error) {
	if len(b) < headSize || b[0] != FrameType {
		return frame{}, fmt.Errorf("%w: %d bytes are too few, or of another type", ErrFrame, len(b))
	}
	f := frame{
		kind:    kind(b[1]),
		first:   b[2]&flagFirst != 0,
		last:    b[2]&flagLast != 0,
		length:  binary.BigEndian.Uint32(b[4:]),
		from:    binary.BigEndian.Uint64(b[8:]),
		to:      binary.BigEndian.Uint64(b[16:]),
		next:    binary.BigEndian.Uint64(b[24:]),
		number:  binary.BigEndian.Uint64(b[32:]),
		payload: b[headSize:],
	}
	switch {
	case f.kind < ack || f.kind > pollReply:
		return frame{}, fmt.Errorf("%w: kind %d", ErrFrame, f.kind)
	case b[2] >= flagLast<<1 || b[3] != 0:
		return frame{}, fmt.Errorf("%w: flags %#x", ErrFrame, b[2:4])
	case f.from == 0:
		return frame{}, fmt.Errorf("%w: from no incarnation", ErrFrame)
	case f.kind != data && (len(f.payload) > 0 || b[2] != 0):
		return frame{}, fmt.Errorf("%w: kind %d carries %d bytes", ErrFrame, f.kind, len(f.payload))
	case !f.first && f.length != 0:
		return frame{}, fmt.Errorf("%w: a length without a first segment", ErrFrame)
	}
	return f, nil
}
