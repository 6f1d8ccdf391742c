package stream

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// kind is what a frame says.
type kind uint8

const (
	// data is a segment on its way along the tree.
	data kind = iota + 1
	// repair is a segment somebody asked for.
	repair
	// offer says what its sender has. It may carry the last segment.
	offer
	// request asks for segments.
	request
	// gone says that segments asked for are no longer kept; to their root, that
	// they are lost.
	gone
	// adopt asks to be sent everything, as a child would be.
	adopt
	// poll asks whether everything before a number has arrived, here and below.
	poll
	// ack says that it has.
	ack
)

// frame is one message between two members, about one root's stream.
//
// Layout, big endian: kind 1, flags 1, root 4, incarnation 8, first 8, last 8
// (request only), left 4 (only if it is not 0), then the segment.
type frame struct {
	kind kind
	// begins says that the segment begins its message; batch, that it is several
	// messages; with, that an offer carries its last segment.
	begins, batch, with bool
	// left is how many bytes of the message are in segments that follow.
	left        uint32
	way         way // an offer's
	root        protocol.Rank
	incarnation uint64
	// first is the segment's number (data, repair), the number after all that
	// is offered (offer) or asked about (poll, ack), the first asked for
	// (request), or the first that is still kept (gone). last ends what is asked for.
	first, last uint64
	segment     []byte
	encoded     []byte // all of it, as it came
	room        *room  // where the segment is already; nil: it is in lent memory
}

// Sizes of a frame's head.
const (
	headSize    = 1 + 1 + 4 + 8 + 8
	requestSize = headSize + 8
	leftSize    = 4
)

// headSizeOf is the size of what is in front of a segment.
func headSizeOf(left uint32) int {
	if left > 0 {
		return headSize + leftSize
	}
	return headSize
}

const (
	flagBegins = 1 << iota
	flagMore
	flagWith
	flagLeftward
	flagRightward
	flagBatch
	flagEnd
)

// ErrFrame is what every error about a frame that makes no sense wraps.
var ErrFrame = errors.New("stream: frame makes no sense")

// append writes the frame behind what is in dst.
func (f *frame) append(dst []byte) []byte {
	var flags byte
	if f.begins {
		flags |= flagBegins
	}
	if f.left > 0 {
		flags |= flagMore
	}
	switch f.way {
	case leftward:
		flags |= flagLeftward
	case rightward:
		flags |= flagRightward
	}
	if f.with {
		flags |= flagWith
	}
	if f.batch {
		flags |= flagBatch
	}
	dst = append(dst, byte(f.kind), flags)
	dst = binary.BigEndian.AppendUint32(dst, uint32(f.root))
	dst = binary.BigEndian.AppendUint64(dst, f.incarnation)
	dst = binary.BigEndian.AppendUint64(dst, f.first)
	if f.kind == request {
		return binary.BigEndian.AppendUint64(dst, f.last)
	}
	if f.left > 0 {
		dst = binary.BigEndian.AppendUint32(dst, f.left)
	}
	return append(dst, f.segment...)
}

// parse reads a frame; the segment stays where it is.
func parse(b []byte) (frame, error) {
	if len(b) < headSize {
		return frame{}, fmt.Errorf("%w: %d bytes are too few", ErrFrame, len(b))
	}
	f := frame{
		kind:        kind(b[0]),
		begins:      b[1]&flagBegins != 0,
		with:        b[1]&flagWith != 0,
		batch:       b[1]&flagBatch != 0,
		way:         way(b[1] / flagLeftward & 3),
		root:        protocol.Rank(binary.BigEndian.Uint32(b[2:])),
		incarnation: binary.BigEndian.Uint64(b[6:]),
		first:       binary.BigEndian.Uint64(b[14:]),
		segment:     b[headSize:],
		encoded:     b,
	}
	if b[1]&flagMore != 0 {
		if len(f.segment) < leftSize {
			return frame{}, fmt.Errorf("%w: %d bytes are too few", ErrFrame, len(b))
		}
		f.left, f.segment = binary.BigEndian.Uint32(f.segment), f.segment[leftSize:]
	}
	switch {
	case f.left == 0 != (b[1]&flagMore == 0), f.left > 0 && !f.carries():
		return frame{}, fmt.Errorf("%w: kind %d with %d bytes left", ErrFrame, f.kind, f.left)
	case f.kind < data || f.kind > ack:
		return frame{}, fmt.Errorf("%w: kind %d", ErrFrame, f.kind)
	case b[1] >= flagEnd, f.way > rightward, f.batch && (!f.begins || f.left > 0 || !f.carries()):
		return frame{}, fmt.Errorf("%w: flags %#x", ErrFrame, b[1])
	case f.first == 0 && (f.kind == poll || f.kind == ack):
		return frame{}, fmt.Errorf("%w: kind %d about nothing", ErrFrame, f.kind)
	case f.with && (f.kind != offer || f.first == 0):
		return frame{}, fmt.Errorf("%w: kind %d with a segment before %d", ErrFrame, f.kind, f.first)
	}
	if f.kind == request {
		if len(b) != requestSize {
			return frame{}, fmt.Errorf("%w: a request of %d bytes", ErrFrame, len(b))
		}
		f.last, f.segment = binary.BigEndian.Uint64(b[headSize:]), nil
	}
	if len(f.segment) > 0 && !f.carries() {
		return frame{}, fmt.Errorf("%w: kind %d carries %d bytes", ErrFrame, f.kind, len(f.segment))
	}
	if f.batch {
		return f, split(f.segment, func([]byte) {})
	}
	return f, nil
}

// carries reports whether the frame carries a segment, possibly an empty one.
func (f *frame) carries() bool { return f.kind == data || f.kind == repair || f.with }
