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
type reassemblyBuffer struct {
	memory []byte
	next   uint64 // the segment that goes behind it
	lent   bool
}

// roomBytes is how much memory is made because a message is announced. A longer one
// has several rooms.
const maxReassemblyBuffer = 4 << 20

// takes reports whether a segment goes here.
func (r *reassemblyBuffer) fits(number uint64, size int) bool {
	return r != nil && r.next == number && !r.lent && cap(r.memory)-len(r.memory) >= size
}

// add takes in a segment that is behind the others already.
func (r *reassemblyBuffer) extend(size int) (segment []byte) {
	n := len(r.memory)
	r.memory, r.next, r.lent = r.memory[:n+size], r.next+1, false
	return r.memory[n:]
}

// roomFor returns where a segment goes. One that is next is likely to be followed by
// the others of its message, in order.
func (f *flow) bufferFor(number uint64, size, remaining int) *reassemblyBuffer {
	if f.reassembly.fits(number, size) {
		return f.reassembly
	}
	if number != f.next {
		return &reassemblyBuffer{memory: make([]byte, 0, size), next: number}
	}
	f.reassembly = &reassemblyBuffer{memory: make([]byte, 0, max(size, min(size+remaining, maxReassemblyBuffer))), next: number}
	return f.reassembly
}

// house returns a frame's segment, in the room where it is or belongs; nil: nowhere,
// because it is alone, or too early.
func (f *flow) reassemble(fr *frame, number uint64) []byte {
	size := len(fr.segment)
	switch {
	case fr.buffer != nil:
		return fr.buffer.extend(size)
	case size == 0 || number != f.next || fr.remaining == 0 && !f.reassembly.fits(number, size):
		return nil
	}
	r := f.bufferFor(number, size, int(fr.remaining))
	copy(r.memory[len(r.memory):cap(r.memory)], fr.segment)
	return r.extend(size)
}

// MemberID returns where all of a long frame belongs but its first bytes, the head.
// Nil: nowhere, because it is not a segment that is missing here.
func (m *Member) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	m.releaseBuffer(from)
	fr, err := parse(head)
	if err != nil || fr.kind != data && fr.kind != repair {
		return nil
	}
	f := m.flowOfFrame(&fr)
	if f == nil || f.has(fr.first) {
		return nil
	}
	rest := size - len(head)
	r := f.bufferFor(fr.first, len(fr.segment)+rest, int(fr.remaining))
	r.lent = true
	m.receiveBuffers[from] = r
	at := len(r.memory) + len(fr.segment)
	return r.memory[at : at+rest : at+rest]
}

// vacate takes back the place that was given to a peer's frame.
func (m *Member) releaseBuffer(peer protocol.Rank) {
	if r := m.receiveBuffers[peer]; r != nil {
		r.lent = false
		delete(m.receiveBuffers, peer)
	}
}

// BufferFilled is like Receive, for a frame whose body is where MemberID has said.
func (m *Member) BufferFilled(now protocol.Time, from protocol.Rank, head, body []byte) error {
	fr, err := parse(head)
	r := m.receiveBuffers[from]
	m.releaseBuffer(from)
	if err != nil || r == nil || r.next != fr.first {
		return m.Receive(now, from, slices.Concat(head, body))
	}
	n := len(r.memory)
	whole := r.memory[n : n+len(fr.segment)+len(body)]
	copy(whole, fr.segment)
	fr.segment, fr.encoded, fr.buffer = whole, nil, r
	m.receive(now, from, &fr)
	return nil
}
