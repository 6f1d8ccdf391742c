package p2p

// A channel is the exchange with one peer: a queue of outgoing segments with a sliding
// window, and the reassembly of incoming messages.

import (
	"github.com/pleach-go/pleach/internal/base/queue"
	"github.com/pleach-go/pleach/protocol"
)

// channel is the state of the exchange with one peer.
//
// Invariants: base <= next <= base+queue.len(); segments before base are
// acknowledged; those from base to next are in flight.
type channel struct {
	peer        protocol.Rank
	incarnation uint64 // by the view
	ready       bool   // it is in the endpoint's list of channels with frames to send

	out     outgoing
	in      incoming
	control control
}

// outgoing is the sending side.
type outgoing struct {
	queue    queue.Queue[segment] // of numbers base, base+1, …
	base     uint64
	next     uint64 // the first that was not sent
	bytes    int    // in the queue
	inFlight int    // of them, sent and not acknowledged
	flush    uint64 // the number behind the last segment before Flush
	// blocked means that the transport takes no frames for the peer at present.
	blocked bool
	// timeoutAt is when the peer is polled unless it acknowledges something before,
	// and rto is the retransmission timeout, which doubles with each poll.
	timeoutAt, rto protocol.Time
	roundTrip      roundTrip
}

// segment is a part of a message, and points into its memory.
type segment struct {
	head, body  []byte // head only in the first segment of a message
	first, last bool
	length      uint32
	onRelease   func() // in the last segment of a message that was sent with SendOwned
}

func (p *segment) size() int { return len(p.head) + len(p.body) }

// incoming is the receiving side.
type incoming struct {
	next     uint64 // the first segment that has not arrived
	message  []byte // the received part of the present message; before its first segment, empty memory for it
	within   bool   // a message has begun
	length   int    // of the message
	unacked  int    // bytes received since the last acknowledgment
	nackedAt uint64 // the gap that was reported last: its next, plus one; 0: none
}

// control is what waits to be sent besides segments.
type control struct {
	ack, poll, reply bool
	echo             uint64 // the number of the poll to answer
	ackAt            protocol.Time
}

func newChannel(peer protocol.Rank, incarnation uint64) *channel {
	return &channel{
		peer: peer, incarnation: incarnation,
		out:     outgoing{timeoutAt: protocol.Never, rto: minRTO},
		control: control{ackAt: protocol.Never},
	}
}

// push cuts a message into segments.
func (o *outgoing) push(head, body []byte, size int, release func()) {
	length := len(head) + len(body)
	for first := true; first || len(body) > 0; first = false {
		p := segment{first: first}
		room := size
		if first {
			p.head, p.length = head, uint32(length)
			room = max(1, size-len(head))
		}
		p.body = body[:min(len(body), room)]
		body = body[len(p.body):]
		p.last = len(body) == 0
		if p.last {
			p.onRelease = release
		}
		o.queue.Push(p)
		o.bytes += p.size()
	}
}

// acknowledge removes the segments before a number, which have arrived.
func (o *outgoing) acknowledge(now protocol.Time, number uint64) {
	if number <= o.base || number > o.base+uint64(o.queue.Len()) {
		return
	}
	for ; o.base < number; o.base++ {
		p := o.queue.Pop()
		o.bytes -= p.size()
		if o.base < o.next {
			o.inFlight -= p.size()
		}
		p.release()
	}
	o.next = max(o.next, number)
	o.roundTrip.acknowledged(number, now)
	o.rto = o.roundTrip.timeout()
	o.armTimer(now)
}

// release tells the owner of the message that it is not needed any more.
func (p *segment) release() {
	if p.onRelease != nil {
		p.onRelease()
	}
}

// abandon drops and releases all segments.
func (o *outgoing) abandon() {
	for range o.queue.Len() {
		p := o.queue.Pop()
		p.release()
	}
	*o = outgoing{timeoutAt: protocol.Never}
}

// armTimer sets the retransmission timer, if segments are in flight or the peer could
// not be sent to.
func (o *outgoing) armTimer(now protocol.Time) {
	o.timeoutAt = protocol.Never
	if o.base < o.next || o.blocked {
		o.timeoutAt = now + o.rto
	}
}

// rewind makes all segments in flight be sent again: they are lost (go-back-N).
func (o *outgoing) rewind() {
	o.next, o.inFlight = o.base, 0
	o.roundTrip.discard()
}

// sendable reports whether a segment may be sent now.
func (o *outgoing) sendable(window int) bool {
	return !o.blocked && o.next < o.base+uint64(o.queue.Len()) && o.inFlight < window
}

// append adds the next segment to the message. It returns the message if that was its
// last segment.
func (i *incoming) append(f *frame, c *Config) (message []byte, complete bool, err error) {
	if f.first == i.within {
		return nil, false, ErrFrame
	}
	if f.first {
		*i = incoming{next: i.next, unacked: i.unacked, within: true, length: int(f.length), message: i.message}
	}
	size := len(f.payload) + len(f.buffered)
	if len(i.message)+size > i.length || i.length > c.MaxMessage {
		return nil, false, ErrFrame
	}
	i.next++
	i.unacked += size
	i.grow(size, i.length, c.Alloc)
	i.message = append(i.message, f.payload...)
	i.message = i.appendBuffered(f.buffered)
	if !f.last {
		return nil, false, nil
	}
	if len(i.message) != i.length {
		return nil, false, ErrFrame
	}
	message, i.message, i.within = i.message, nil, false
	return message, true, nil
}

// buffer grows the message for the next segment, whose first bytes are in f, and
// returns the memory for the rest, or nil if f cannot be the next segment.
func (i *incoming) buffer(f *frame, rest int, c *Config) []byte {
	length := i.length
	if f.first {
		length = int(f.length)
	}
	size := len(f.payload) + rest
	if f.first == i.within || len(i.message)+size > length || length > c.MaxMessage {
		return nil
	}
	i.grow(size, length, c.Alloc)
	at := len(i.message) + len(f.payload)
	return i.message[at : at+rest : at+rest]
}

// appendBuffered returns the message with the rest of a segment, which usually is
// in place already.
func (i *incoming) appendBuffered(rest []byte) []byte {
	n := len(i.message)
	if len(rest) > 0 && &i.message[:n+1][n] == &rest[0] {
		return i.message[:n+len(rest)]
	}
	return append(i.message, rest...)
}

// firstAlloc bounds the memory that the announced length of a message allocates.
const firstAlloc = 16 << 20

// grow allocates memory as bytes arrive: for a long message not at once for all that
// was announced.
func (i *incoming) grow(n, length int, alloc func(int) []byte) {
	if len(i.message)+n <= cap(i.message) {
		return
	}
	bigger := alloc(min(length, max(firstAlloc, 4*cap(i.message), len(i.message)+n)))
	i.message = bigger[:copy(bigger, i.message)]
}
