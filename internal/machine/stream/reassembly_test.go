package stream_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// long returns a member, and the frames of a root's message of that many bytes.
func long(t *testing.T, size int) (m *stream.Member, message []byte, frames [][]byte) {
	t.Helper()
	n := newNetwork(t, 2, 1, faults{}, nil)
	message = bytes.Repeat([]byte("0123456789abcdef"), size/16)
	root := n.members[0]
	for rest := message; len(rest) > 0; {
		piece := rest[:min(len(rest), root.SegmentSize())]
		rest = rest[len(piece):]
		if err := root.Write(piece, len(rest)); err != nil {
			t.Fatal(err)
		}
		for {
			_, head, body, ok := root.Next(1)
			if !ok {
				break
			}
			frames = append(frames, append(bytes.Clone(head), body...))
		}
	}
	return n.members[1].Member, message, frames
}

// readInto receives a frame as a transport does that reads it into the receive buffer.
func readInto(t *testing.T, m *stream.Member, from protocol.Rank, frame []byte) (whole func()) {
	t.Helper()
	body := m.ReceiveBuffer(from, frame[:64], len(frame))
	if body == nil {
		t.Fatal("there is no buffer for a segment that is missing")
	}
	return func() {
		copy(body, frame[64:])
		if err := m.BufferFilled(1, from, frame[:64], body); err != nil {
			t.Fatal(err)
		}
	}
}

// delivered returns the one message that a member has delivered.
func delivered(t *testing.T, m *stream.Member) []byte {
	t.Helper()
	message, ok := m.Deliver(1)
	if !ok {
		t.Fatal("nothing was delivered")
	}
	return message.Data
}

// A long message is read to where it stays: memory is allocated once, and nothing is
// copied.
func TestLongMessageIsReadInPlace(t *testing.T) {
	m, message, frames := long(t, 192<<10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, frame := range frames {
		readInto(t, m, 0, frame)()
	}
	got := delivered(t, m)
	runtime.ReadMemStats(&after)
	if !bytes.Equal(got, message) {
		t.Error("it is not what was sent")
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > uint64(len(message)*5/4) {
		t.Errorf("memory was made for %d bytes, of a message of %d", made, len(message))
	}
	if cap(got) != len(got) {
		t.Error("appending to it would overwrite other memory")
	}
}

// A buffer that one transport writes to is lent to no other, even if the segment comes
// from another peer first.
func TestReceiveBuffersAreNotShared(t *testing.T) {
	m, message, frames := long(t, 192<<10)
	readInto(t, m, 0, frames[0])()
	slow := m.ReceiveBuffer(0, frames[1][:64], len(frames[1]))
	for i := range frames[1:] {
		readInto(t, m, 1+protocol.Rank(i), frames[1+i])()
	}
	for i := range slow {
		slow[i] = 0xee // as if the peer sent something else
	}
	if !bytes.Equal(delivered(t, m), message) {
		t.Error("it is not what was sent")
	}
	if err := m.BufferFilled(1, 0, frames[1][:64], slow); err != nil {
		t.Fatal(err)
	}
	if m.ReceiveBuffer(0, frames[2][:64], len(frames[2])) != nil {
		t.Error("there is a buffer for what is here already")
	}
	if again, ok := m.Deliver(1); ok {
		t.Errorf("%d bytes were delivered again", len(again.Data))
	}
}
