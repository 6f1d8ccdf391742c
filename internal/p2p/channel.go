package p2p

import (
	"github.com/pleach-go/pleach/internal/queue"
	"github.com/pleach-go/pleach/protocol"
)

// channel is what a member knows of its exchange with another.
//
// Invariants: base <= next <= base+queue.len(); segments before base have arrived
// there; those from base to next are on their way, as far as is known.
type channel struct {
	peer        protocol.Rank
	incarnation uint64 // by the view
	session     uint64 // 0: not known yet
	ready       bool   // it is in the courier's list of those with something to send

	out     outgoing
	in      incoming
	control control
}

// outgoing is what goes there.
type outgoing struct {
	queue    queue.Queue[segment] // of numbers base, base+1, …
	base     uint64
	next     uint64 // the first that is not on its way
	bytes    int    // in the queue
	inFlight int    // of them, on their way
	// blocked says that the transport takes nothing for the peer at the moment.
	blocked bool
	// timeoutAt is when the peer is asked how far it has come, if nothing is heard
	// from it, and patience how long that takes.
	timeoutAt, rto protocol.Time
}

// segment is a segment, whose memory belongs to the message.
type segment struct {
	head, body  []byte // head only in a message's first
	first, last bool
	length      uint32
	onRelease   func() // of a message's last, if it was lent: it is here no more
}

func (p *segment) size() int { return len(p.head) + len(p.body) }

// incoming is what comes from there.
type incoming struct {
	next     uint64 // the first segment that is not here
	message  []byte // what has come of the present message; before it has begun, room for it
	within   bool   // there is one
	length   int    // of it
	unacked  int    // bytes that have come since the peer was told
	nackedAt uint64 // the peer was told of a hole before next: its next, plus one
}

// control is what the peer is to be told beside segments.
type control struct {
	ack, poll, reply bool
	echo             uint64 // of the question that is answered
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
		if p.last = len(body) == 0; p.last {
			p.onRelease = release
		}
		o.queue.Push(p)
		o.bytes += p.size()
	}
}

// acknowledge takes in that the peer has everything before a number.
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
	o.rto = minRTO
	o.armTimer(now)
}

// release says that what was lent is not needed any more.
func (p *segment) release() {
	if p.onRelease != nil {
		p.onRelease()
	}
}

// abandon ends everything that is in it.
func (o *outgoing) abandon() {
	for o.queue.Len() > 0 {
		p := o.queue.Pop()
		p.release()
	}
	*o = outgoing{timeoutAt: protocol.Never}
}

// armTimer sets the time by which the peer should be heard of, or, if it could not be
// sent to, tried again.
func (o *outgoing) armTimer(now protocol.Time) {
	o.timeoutAt = protocol.Never
	if o.base < o.next || o.blocked {
		o.timeoutAt = now + o.rto
	}
}

// rewind takes back everything that is on its way: it has been lost.
func (o *outgoing) rewind() { o.next, o.inFlight = o.base, 0 }

// sendable reports whether a segment may go now.
func (o *outgoing) sendable(window int) bool {
	return !o.blocked && o.next < o.base+uint64(o.queue.Len()) && (o.inFlight == 0 || o.inFlight < window)
}

// append takes the next segment in: it must be the one that is due. It returns the
// message when that was its last.
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
	i.unacked += size + headSize
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

// buffer makes room for the next segment, of which the beginning is here, and returns
// where its rest goes: nil if it cannot be the next.
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

// appendBuffered returns the message with the rest of a segment, which usually is where it
// belongs.
func (i *incoming) appendBuffered(rest []byte) []byte {
	n := len(i.message)
	if len(rest) > 0 && cap(i.message)-n >= len(rest) && &i.message[:n+1][n] == &rest[0] {
		return i.message[:n+len(rest)]
	}
	return append(i.message, rest...)
}

// firstAlloc is how much room is made because a message is announced.
const firstAlloc = 16 << 20

// grow makes room as bytes come: not at once for all that were announced, if they
// are many.
func (i *incoming) grow(n, length int, alloc func(int) []byte) {
	if len(i.message)+n <= cap(i.message) {
		return
	}
	bigger := alloc(min(length, max(firstAlloc, 4*cap(i.message), len(i.message)+n)))
	i.message = bigger[:copy(bigger, i.message)]
}
