package stream

import (
	"bytes"
	"testing"
)

// Where segments and messages are in memory, and when that is used again.

// Memory is used again when the last segment of its message is trimmed, if the program has released
// it and nothing else uses it.
func TestWhenMemoryIsUsedAgain(t *testing.T) {
	for what, c := range map[string]struct {
		buffer *reassemblyBuffer
		number uint64
		again  bool
	}{
		"none":               {nil, 2, false},
		"the last":           {&reassemblyBuffer{next: 3, leased: true}, 2, true},
		"not the last":       {&reassemblyBuffer{next: 3, leased: true}, 1, false},
		"not delivered":      {&reassemblyBuffer{next: 3}, 2, false},
		"not released":       {&reassemblyBuffer{next: 3, leased: true, leases: 1}, 2, false},
		"a transport has it": {&reassemblyBuffer{next: 3, leased: true, lent: true}, 2, false},
	} {
		m := group(t, Config{}, 2)[0]
		if c.buffer != nil {
			c.buffer.memory = make([]byte, 100)
		}
		m.recycle(c.number, &segment{buffer: c.buffer})
		if (m.spare.bytes > 0) != c.again {
			t.Errorf("%s: used again: %t", what, m.spare.bytes > 0)
		}
	}
	m := group(t, Config{}, 3)[0]
	in, out := &reassemblyBuffer{}, &reassemblyBuffer{}
	m.queueSegment(1, m.own.flow, data, &segment{buffer: in})
	if !m.sends(in) || m.sends(out) {
		t.Error("memory of a frame that waits is free, or another one's is not")
	}
	m.lastSent = m.outbox.Pop()
	if !m.sends(in) {
		t.Error("memory of the frame that is being sent is free")
	}
	empty := frame{kind: data, begins: true, root: 1, incarnation: 1}
	b := empty.append(nil)
	m.ReceiveBuffer(1, b, len(b))
	if err := m.BufferFilled(1, 1, b, nil); err != nil || m.Pending() != 1 {
		t.Errorf("an empty message that is read into a buffer: %v", err)
	}
}

// Short frames share chunks of memory, and long ones have their own.
func TestFramesFromASlab(t *testing.T) {
	var s slab
	s.get(1)
	for n, shared := range map[int]bool{slabFrame: true, slabFrame + 1: false} {
		before := len(s.rest)
		if b := s.get(n); cap(b) != n || (len(s.rest) < before) != shared {
			t.Errorf("%d bytes: in a chunk: %t", n, len(s.rest) < before)
		}
		before = len(s.rest)
		if b := s.join(make([]byte, n-5), make([]byte, 5)); len(b) != n || (len(s.rest) < before) != shared {
			t.Errorf("%d bytes joined: in a chunk: %t", n, len(s.rest) < before)
		}
	}
}

// Most messages are one segment, and are delivered where they are: that allocates nothing.
func TestShortMessageIsNotCopied(t *testing.T) {
	var p partial
	seg := segment{begins: true, frame: append(make([]byte, headSizeOf(0)), "message"...)}
	if n := testing.AllocsPerRun(100, func() {
		if got, complete := p.add(&seg, 100); !complete || len(got) != 7 {
			t.Fatalf("%q", got)
		}
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// A segment that arrives before its turn has memory for itself: what is announced to follow it
// has none, and the message that is arriving stays where it is.
func TestSegmentAheadHasMemoryForItself(t *testing.T) {
	m, f := behind(t, 0)
	arriving := m.bufferFor(f, 0, 100, 1000)
	if cap(arriving.memory) != 1100 || f.reassembly != arriving {
		t.Fatalf("%d bytes for a message of 1100", cap(arriving.memory))
	}
	if ahead := m.bufferFor(f, 5, 100, 1000); cap(ahead.memory) != 100 || f.reassembly != arriving || ahead.next != 5 {
		t.Errorf("%d bytes for a segment of 100", cap(ahead.memory))
	}
	f.reassembly = nil
	if cap(m.bufferFor(f, 0, 100, maxReassemblyBuffer).memory) != maxReassemblyBuffer {
		t.Error("more memory than maxReassemblyBuffer because a message is announced")
	}
}

// A frame whose buffer was taken back meanwhile, or is that of another frame, is received as any.
func TestFrameWithoutItsBuffer(t *testing.T) {
	message := func(number int) []byte {
		f := frame{
			kind: data, begins: true, incarnation: 1, first: uint64(number), messages: uint32(number),
			segment: bytes.Repeat([]byte{byte('a' + number)}, 200),
		}
		return f.append(nil)
	}
	for what, meanwhile := range map[string]func(*Member){
		"nothing":      func(*Member) {},
		"down":         func(m *Member) { m.Down(1, 0) },
		"other frame":  func(m *Member) { m.ReceiveBuffer(0, message(1)[:64], len(message(1))) },
		"arrived here": func(m *Member) { _ = m.Receive(1, 2, message(0)) },
	} {
		m := group(t, Config{}, 3)[1]
		b := message(0)
		body := m.ReceiveBuffer(0, b[:64], len(b))
		copy(body, b[64:])
		meanwhile(m)
		if err := m.BufferFilled(1, 0, b[:64], body); err != nil {
			t.Fatal(err)
		}
		got, _ := m.Deliver(1)
		if !bytes.Equal(got.Data, bytes.Repeat([]byte("a"), 200)) || m.Pending() > 0 || len(m.receiveBuffers) > 0 {
			t.Errorf("%s: %q, and %d more", what, got.Data, m.Pending())
		}
	}
	m := group(t, Config{}, 3)[1]
	if m.ReceiveBuffer(0, []byte("short"), 100) != nil || m.BufferFilled(1, 0, []byte("short"), nil) == nil {
		t.Error("a malformed frame is received")
	}
	request := frame{kind: request, incarnation: 1, first: 1, last: 2}
	if m.ReceiveBuffer(0, request.append(nil), 1000) != nil {
		t.Error("there is a buffer for a request")
	}
}
