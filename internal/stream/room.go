package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// room is memory for a message that comes in segments: each goes behind the one
// before, so that they need not be joined in the end. Long frames are read to there
// by the transport itself.
//
// Invariants: what is in memory is there to stay, because segments that are kept, or
// on their way to others, are parts of it. What is behind it may be written to by
// one transport, if it is given, and then by nobody else.
type room struct {
	memory []byte
	next   uint64 // the segment that goes behind it
	given  bool
}

// roomBytes is how much memory is made because a message is announced. A longer one
// has several rooms.
const roomBytes = 4 << 20

// takes reports whether a segment goes here.
func (r *room) takes(number uint64, size int) bool {
	return r != nil && r.next == number && !r.given && cap(r.memory)-len(r.memory) >= size
}

// add takes in a segment that is behind the others already.
func (r *room) add(size int) (segment []byte) {
	n := len(r.memory)
	r.memory, r.next, r.given = r.memory[:n+size], r.next+1, false
	return r.memory[n:]
}

// roomFor returns where a segment goes. One that is next is likely to be followed by
// the others of its message, in order.
func (f *flow) roomFor(number uint64, size, left int) *room {
	if f.room.takes(number, size) {
		return f.room
	}
	if number != f.next {
		return &room{memory: make([]byte, 0, size), next: number}
	}
	f.room = &room{memory: make([]byte, 0, max(size, min(size+left, roomBytes))), next: number}
	return f.room
}

// house returns a frame's segment, in the room where it is or belongs; nil: nowhere,
// because it is alone, or too early.
func (f *flow) house(fr *frame, number uint64) []byte {
	size := len(fr.segment)
	switch {
	case fr.room != nil:
		return fr.room.add(size)
	case size == 0 || number != f.next || fr.left == 0 && !f.room.takes(number, size):
		return nil
	}
	r := f.roomFor(number, size, int(fr.left))
	copy(r.memory[len(r.memory):cap(r.memory)], fr.segment)
	return r.add(size)
}

// MemberID returns where all of a long frame belongs but its first bytes, the head.
// Nil: nowhere, because it is not a segment that is missing here.
func (m *Member) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	m.vacate(from)
	fr, err := parse(head)
	if err != nil || fr.kind != data && fr.kind != repair {
		return nil
	}
	f := m.follow(&fr)
	if f == nil || f.has(fr.first) {
		return nil
	}
	rest := size - len(head)
	r := f.roomFor(fr.first, len(fr.segment)+rest, int(fr.left))
	r.given = true
	m.places[from] = r
	at := len(r.memory) + len(fr.segment)
	return r.memory[at : at+rest : at+rest]
}

// vacate takes back the place that was given to a peer's frame.
func (m *Member) vacate(peer protocol.Rank) {
	if r := m.places[peer]; r != nil {
		r.given = false
		delete(m.places, peer)
	}
}

// BufferFilled is like Receive, for a frame whose body is where MemberID has said.
func (m *Member) BufferFilled(now protocol.Time, from protocol.Rank, head, body []byte) error {
	fr, err := parse(head)
	r := m.places[from]
	m.vacate(from)
	if err != nil || r == nil || r.next != fr.first {
		return m.Receive(now, from, slices.Concat(head, body))
	}
	n := len(r.memory)
	whole := r.memory[n : n+len(fr.segment)+len(body)]
	copy(whole, fr.segment)
	fr.segment, fr.encoded, fr.room = whole, nil, r
	m.receive(now, from, &fr)
	return nil
}
