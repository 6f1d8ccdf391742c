package stream

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// kind is the type of a frame. Its values are on the wire.
type kind uint8

const (
	// data is a segment on its way along the tree.
	data kind = iota + 1
	// repair is a segment that was requested: a retransmission.
	repair
	// offer says how much its sender has (IHAVE). It may carry the last segment inline.
	offer
	// request asks for segments (IWANT).
	request
	// trimmed says that the requested segments are no longer kept. Sent to their root,
	// it says that its sender has lost some.
	trimmed
	// adopt asks to be sent everything, as a child is (GRAFT), or with a number no longer
	// (PRUNE).
	adopt
	// poll asks whether everything before a number has arrived at a member and at all
	// below it.
	poll
	// ack says that it has.
	ack
	// grantCredit is a credit: all below have accepted everything before a number, or
	// given it up (window.go).
	grantCredit
	// creditPoll asks for a credit that may have been lost.
	creditPoll
	// agedOffer is an offer that tells its age. In memory it is an offer, with aged set.
	agedOffer
	// splitCredit is a credit that tells apart what all below have accepted, and what those
	// have that answer. In memory it is a grantCredit, with a number in live.
	splitCredit
)

// frame is one message between two members, about one root's stream.
//
// Layout, big endian: kind 1, flags 1, root 4, incarnation 8, first 8, last 8 (request
// only), view 8 (polls, acks and credits only), messages 4 (only before a segment, and in
// trimmed), unaccepted 4 (only before a segment), remaining 4 (only if it is not 0), the
// segment, age 4 and skew 4 (agedOffer only), live 8 (splitCredit only).
type frame struct {
	kind kind
	// begins says that the segment begins its message; batch, that it is a batch; labeled,
	// that each message in it begins with its label (label.go); traced, that members
	// report its arrival (trace.go); inline, that an offer
	// carries its last segment.
	begins, batch, labeled, traced, inline bool
	// processed says that a poll or an ack is about what programs have processed. Members
	// before it was added take them for polls, and acks, of receipts.
	processed bool
	// remaining is how many bytes of the message are in the segments that follow.
	remaining   uint32
	direction   direction // of an offer
	aged        bool      // the offer tells its age
	age         uint32    // microseconds since the sender of an offer has received the last segment offered
	skew        uint32    // microseconds between the arrivals at neighbors, as the sender of an offer knows it
	root        protocol.Rank
	incarnation uint64
	// first is the segment's number (data, repair), the number after all that is offered
	// (offer) or asked about (poll, ack), the first requested (request), the first that is
	// still kept (trimmed), or the first that the tree brings again (adopt). last is the number
	// after the last requested.
	first, last uint64
	// live is the number before which those below that answer have accepted everything, if
	// it is greater than first (grantCredit).
	live uint64
	// view is the sender's. What it says about all below holds among the members of that
	// view.
	view uint64
	// messages counts the messages of the root that begin before the segment, or before
	// the first that is still kept (trimmed; if zero, it is not known). It wraps around.
	messages uint32
	// unaccepted is how many segments before this one some member may not have accepted
	// yet, as far as the sender knows. See store.go.
	unaccepted uint32
	segment    []byte
	batched    int               // messages in the segment, if it is a batch
	encoded    []byte            // the whole frame as it arrived
	buffer     *reassemblyBuffer // holds the segment already; if nil, the segment is in borrowed memory
}

// Sizes of a frame's head, in bytes.
const (
	headSize       = 1 + 1 + 4 + 8 + 8
	requestSize    = headSize + 8 // also of polls, acks and credits
	messagesSize   = 4
	unacceptedSize = 4
	remainingSize  = 4
	ageSize        = 4 + 4
	liveSize       = 8
)

// headSizeOf returns the size of the head before a segment.
func headSizeOf(remaining uint32) int {
	if remaining > 0 {
		return headSize + messagesSize + unacceptedSize + remainingSize
	}
	return headSize + messagesSize + unacceptedSize
}

const (
	flagBegins = 1 << iota
	flagMore
	flagInline
	flagLeftward
	flagRightward
	flagBatch
	flagLabel
	flagTraced
)

// ErrFrame is wrapped by every error about a malformed frame.
var ErrFrame = errors.New("stream: malformed frame")

// append appends the encoded frame to dst.
func (f *frame) append(dst []byte) []byte {
	var flags byte
	if f.begins || f.processed {
		flags |= flagBegins
	}
	if f.remaining > 0 {
		flags |= flagMore
	}
	switch f.direction {
	case leftward:
		flags |= flagLeftward
	case rightward:
		flags |= flagRightward
	}
	if f.inline {
		flags |= flagInline
	}
	if f.batch {
		flags |= flagBatch
	}
	if f.labeled {
		flags |= flagLabel
	}
	if f.traced {
		flags |= flagTraced
	}
	k := f.kind
	switch {
	case f.aged:
		k = agedOffer
	case f.live > 0:
		k = splitCredit
	}
	dst = append(dst, byte(k), flags)
	dst = binary.BigEndian.AppendUint32(dst, uint32(f.root))
	dst = binary.BigEndian.AppendUint64(dst, f.incarnation)
	dst = binary.BigEndian.AppendUint64(dst, f.first)
	if f.kind == request {
		return binary.BigEndian.AppendUint64(dst, f.last)
	}
	if f.combines() {
		dst = binary.BigEndian.AppendUint64(dst, f.view)
		if f.live > 0 {
			dst = binary.BigEndian.AppendUint64(dst, f.live)
		}
		return dst
	}
	if f.countsMessages() {
		dst = binary.BigEndian.AppendUint32(dst, f.messages)
	}
	if f.carriesSegment() {
		dst = binary.BigEndian.AppendUint32(dst, f.unaccepted)
	}
	if f.remaining > 0 {
		dst = binary.BigEndian.AppendUint32(dst, f.remaining)
	}
	dst = append(dst, f.segment...)
	if f.aged {
		dst = binary.BigEndian.AppendUint32(dst, f.age)
		dst = binary.BigEndian.AppendUint32(dst, f.skew)
	}
	return dst
}

// parse decodes a frame. The segment aliases b.
func parse(b []byte) (frame, error) {
	if len(b) < headSize {
		return frame{}, fmt.Errorf("%w: %d bytes are too few", ErrFrame, len(b))
	}
	switch kind(b[0]) {
	case agedOffer:
		return parseAged(b)
	case splitCredit:
		return parseSplit(b)
	}
	return parseKind(kind(b[0]), b)
}

// parseAged decodes an offer that tells its age.
func parseAged(b []byte) (frame, error) {
	end := len(b) - ageSize
	if end < headSize {
		return frame{}, fmt.Errorf("%w: %d bytes are too few", ErrFrame, len(b))
	}
	f, err := parseKind(offer, b[:end])
	f.aged, f.age, f.skew = true, binary.BigEndian.Uint32(b[end:]), binary.BigEndian.Uint32(b[end+4:])
	return f, err
}

// parseSplit decodes a credit with two numbers.
func parseSplit(b []byte) (frame, error) {
	end := len(b) - liveSize
	if end < headSize {
		return frame{}, fmt.Errorf("%w: %d bytes are too few", ErrFrame, len(b))
	}
	f, err := parseKind(grantCredit, b[:end])
	f.live = binary.BigEndian.Uint64(b[end:])
	if err == nil && f.live <= f.first {
		return frame{}, fmt.Errorf("%w: a credit of %d, and of %d for those that answer", ErrFrame, f.first, f.live)
	}
	return f, err
}

// parseKind decodes a frame of a kind, which need not be its first byte.
func parseKind(k kind, b []byte) (frame, error) {
	f := frame{
		kind:        k,
		begins:      b[1]&flagBegins != 0,
		inline:      b[1]&flagInline != 0,
		batch:       b[1]&flagBatch != 0,
		labeled:     b[1]&flagLabel != 0,
		traced:      b[1]&flagTraced != 0,
		direction:   direction(b[1] / flagLeftward & 3),
		root:        protocol.Rank(binary.BigEndian.Uint32(b[2:])),
		incarnation: binary.BigEndian.Uint64(b[6:]),
		first:       binary.BigEndian.Uint64(b[14:]),
		encoded:     b,
	}
	head := headSize
	switch {
	case f.carriesSegment():
		head = headSizeOf(uint32(b[1] & flagMore))
	case f.countsMessages():
		head += messagesSize
	}
	if len(b) < head {
		return frame{}, fmt.Errorf("%w: %d bytes are too few", ErrFrame, len(b))
	}
	f.segment = b[head:]
	if head > headSize {
		f.messages = binary.BigEndian.Uint32(b[headSize:])
	}
	if f.carriesSegment() {
		f.unaccepted = binary.BigEndian.Uint32(b[headSize+messagesSize:])
	}
	if head == headSizeOf(flagMore) {
		f.remaining = binary.BigEndian.Uint32(b[head-remainingSize:])
	}
	switch {
	case f.remaining == 0 != (b[1]&flagMore == 0), f.remaining > 0 && !f.carriesSegment():
		return frame{}, fmt.Errorf("%w: kind %d with %d bytes left", ErrFrame, f.kind, f.remaining)
	case f.kind < data || f.kind > creditPoll:
		return frame{}, fmt.Errorf("%w: kind %d", ErrFrame, f.kind)
	case f.direction > rightward, f.batch && (f.remaining > 0 || f.traced), (f.batch || f.labeled || f.traced) &&
		(!f.begins || !f.carriesSegment()):
		return frame{}, fmt.Errorf("%w: flags %#x", ErrFrame, b[1])
	case f.first == 0 && f.kind >= poll && f.kind != grantCredit:
		return frame{}, fmt.Errorf("%w: kind %d about nothing", ErrFrame, f.kind)
	case uint64(f.unaccepted) > f.first:
		return frame{}, fmt.Errorf("%w: %d segments before %d", ErrFrame, f.unaccepted, f.first)
	case f.inline && (f.kind != offer || f.first == 0):
		return frame{}, fmt.Errorf("%w: kind %d with a segment before %d", ErrFrame, f.kind, f.first)
	}
	if f.kind == request {
		if len(b) != requestSize {
			return frame{}, fmt.Errorf("%w: a request of %d bytes", ErrFrame, len(b))
		}
		f.last, f.segment = binary.BigEndian.Uint64(b[headSize:]), nil
	}
	if f.combines() {
		if len(b) != requestSize {
			return frame{}, fmt.Errorf("%w: kind %d of %d bytes", ErrFrame, f.kind, len(b))
		}
		f.view, f.segment = binary.BigEndian.Uint64(b[headSize:]), nil
		if f.kind == poll || f.kind == ack {
			f.processed, f.begins = f.begins, false
		}
	}
	if len(f.segment) > 0 && !f.carriesSegment() {
		return frame{}, fmt.Errorf("%w: kind %d carries %d bytes", ErrFrame, f.kind, len(f.segment))
	}
	return f, f.parseMessages()
}

// parseMessages counts the messages of a batch, and refuses those that lack their label.
func (f *frame) parseMessages() error {
	switch {
	case f.batch:
		valid := true
		err := split(f.segment, func(message []byte) {
			f.batched++
			valid = valid && (!f.labeled || hasLabel(message))
		})
		if err != nil || valid {
			return err
		}
	case !f.labeled || hasLabel(f.segment):
		return nil
	}
	return fmt.Errorf("%w: a message without the label that it should have", ErrFrame)
}

// combines reports whether the frame asks, or answers, for all below a member.
func (f *frame) combines() bool { return f.kind >= poll }

// countsMessages reports whether the frame says how many messages begin before it.
func (f *frame) countsMessages() bool { return f.carriesSegment() || f.kind == trimmed }

// carriesSegment reports whether the frame carries a segment, possibly an empty one.
func (f *frame) carriesSegment() bool { return f.kind == data || f.kind == repair || f.inline }
