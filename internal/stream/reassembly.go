package stream

import (
	"bytes"
	"slices"
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

// partial is a message whose segments are coming in.
type partial struct {
	parts   [][]byte // those that follow each other in memory are one
	bytes   int
	skipped bool // its beginning was lost, or it is too long: nobody gets it
}

// add takes the next segment; it returns the message when that was its last.
func (p *partial) add(seg *segment, limit int) (message []byte, complete bool) {
	if seg.begins {
		*p = partial{}
		if seg.remaining == 0 {
			return slices.Clip(seg.payload()), len(seg.payload()) <= limit
		}
	}
	if p.bytes += len(seg.payload()); p.bytes > limit {
		*p = partial{skipped: true}
	}
	if p.skipped {
		return nil, false
	}
	p.join(seg.payload())
	if seg.remaining > 0 {
		return nil, false
	}
	message = p.parts[0]
	if len(p.parts) > 1 {
		message = bytes.Join(p.parts, nil) // which does not clear it first
	}
	*p = partial{}
	return slices.Clip(message), true
}

// join adds a part, to the last one if it is the memory behind that.
func (p *partial) join(part []byte) {
	if n := len(p.parts); n > 0 && adjacent(p.parts[n-1], part) {
		p.parts[n-1] = p.parts[n-1][:len(p.parts[n-1])+len(part)]
		return
	}
	p.parts = append(p.parts, part)
}

// behind reports whether b is the memory behind a.
func adjacent(a, b []byte) bool {
	n := len(a)
	return len(b) > 0 && cap(a)-n >= len(b) && &a[:n+1][n] == &b[0]
}
