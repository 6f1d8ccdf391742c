package stream

import (
	"bytes"
	"slices"
)

// reassemblyBuffer is memory for a message that arrives in segments. Each segment goes
// behind the one before, so the segments need not be joined afterwards. The transport
// reads long frames directly into it (receivebuffer.go).
//
// Invariants: memory is never overwritten while segments that are kept or in flight, or
// messages in the program's hands, are parts of it (recycle.go). The free space behind it,
// while lent, is written to by one transport only.
type reassemblyBuffer struct {
	memory []byte
	next   uint64 // the segment that goes behind it
	lent   bool
	// leased says that the program was given the one message that the buffer holds, and
	// leases counts the queues whose copy it has not released yet.
	leased bool
	leases int
}

// maxReassemblyBuffer is how much memory is allocated because a message is announced. A
// longer message has several buffers.
const maxReassemblyBuffer = 4 << 20

// fits reports whether a segment goes here next.
func (r *reassemblyBuffer) fits(number uint64, size int) bool {
	return r != nil && r.next == number && !r.lent && !r.leased && cap(r.memory)-len(r.memory) >= size
}

// extend adds a segment whose bytes are already behind the others.
func (r *reassemblyBuffer) extend(size int) (segment []byte) {
	n := len(r.memory)
	r.memory, r.next, r.lent = r.memory[:n+size], r.next+1, false
	return r.memory[n:]
}

// bufferFor returns the buffer for a segment. The next segment of a stream is probably
// followed by the others of its message, in order, so its buffer has space for them.
func (m *Member) bufferFor(f *flow, number uint64, size, remaining int) *reassemblyBuffer {
	if f.reassembly.fits(number, size) {
		return f.reassembly
	}
	if number != f.next {
		return &reassemblyBuffer{memory: m.spare.get(size), next: number}
	}
	f.reassembly = &reassemblyBuffer{
		memory: m.spare.get(max(size, min(size+remaining, maxReassemblyBuffer))),
		next:   number,
	}
	return f.reassembly
}

// reassemble puts a frame's segment into its buffer and returns both. It returns nil if
// the segment needs none, because it is a whole message or arrived behind a hole.
func (m *Member) reassemble(f *flow, fr *frame, number uint64) (body []byte, r *reassemblyBuffer) {
	size := len(fr.segment)
	switch {
	case fr.buffer != nil:
		return fr.buffer.extend(size), fr.buffer
	case size == 0 || number != f.next || fr.remaining == 0 && !f.reassembly.fits(number, size):
		return nil, nil
	}
	r = m.bufferFor(f, number, size, int(fr.remaining))
	copy(r.memory[len(r.memory):cap(r.memory)], fr.segment)
	return r.extend(size), r
}

// partial is a message whose segments are being delivered.
type partial struct {
	parts   [][]byte // adjacent ones are merged
	bytes   int
	begun   bool // its first segment was here, and the others so far
	skipped bool // its beginning was lost or it is too long: it is not delivered
}

// add adds the next segment. It returns the message if that was the last one.
func (p *partial) add(seg *segment, limit int) (message []byte, complete bool) {
	if seg.begins {
		*p = partial{begun: seg.remaining > 0}
		if seg.remaining == 0 {
			return slices.Clip(seg.payload()), len(seg.payload()) <= limit
		}
	}
	if !p.begun { // a sender may continue what it has not begun
		return nil, false
	}
	p.bytes += len(seg.payload())
	if p.bytes > limit {
		*p = partial{skipped: true}
		return nil, false
	}
	p.join(seg.payload())
	if seg.remaining > 0 {
		return nil, false
	}
	message = p.parts[0]
	if len(p.parts) > 1 {
		message = bytes.Join(p.parts, nil) // does not clear the memory first
	}
	*p = partial{}
	return slices.Clip(message), true
}

// join appends a part, merging it with the last one if they are adjacent in memory.
func (p *partial) join(part []byte) {
	if n := len(p.parts); n > 0 && adjacent(p.parts[n-1], part) {
		p.parts[n-1] = p.parts[n-1][:len(p.parts[n-1])+len(part)]
		return
	}
	p.parts = append(p.parts, part)
}

// adjacent reports whether b directly follows a in memory.
func adjacent(a, b []byte) bool {
	n := len(a)
	return len(b) > 0 && cap(a)-n >= len(b) && &a[:n+1][n] == &b[0]
}
