package stream_test

import (
	"bytes"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// take passes a message from a root to a member that keeps little, and returns it with its
// memory.
func take(t *testing.T, root, m *stream.Member, message []byte) stream.Message {
	t.Helper()
	if err := root.Write(message, 0); err != nil {
		t.Fatal(err)
	}
	for _, head, body, ok := root.Next(1); ok; _, head, body, ok = root.Next(1) {
		if frame := append(bytes.Clone(head), body...); len(frame) > len(message) {
			readInto(t, m, 0, frame)()
		}
	}
	for to, head, body, ok := m.Next(1); ok; to, head, body, ok = m.Next(1) {
		if to == 0 {
			_ = root.Receive(1, 1, append(bytes.Clone(head), body...))
		}
	}
	got, ok := m.Deliver(1)
	if !ok || !bytes.Equal(got.Data, message) {
		t.Fatal("the message has not arrived")
	}
	return got
}

// A message that is released, and that no other member may ask for any more, leaves its
// memory to the next one. One that is not released keeps it.
func TestReleasedMemoryIsUsedAgain(t *testing.T) {
	const size = 64 << 10
	for _, released := range []bool{true, false} {
		n := newNetwork(t, 2, 1, faults{}, func(c *stream.Config) { c.KeepBytes = 2 * size })
		var messages []stream.Message
		again := 0
		for i := range 20 {
			got := take(t, n.members[0].Member, n.members[1].Member, message(0, i, size))
			for _, before := range messages {
				if &before.Data[0] == &got.Data[0] {
					again++
				}
			}
			messages = append(messages, got)
			if released {
				n.members[1].Release(got.Lease)
				n.members[1].Release(got.Lease) // twice is once
			}
		}
		if released && again == 0 {
			t.Error("the memory of no message was used again")
		}
		for i, m := range messages {
			if !released && !bytes.Equal(m.Data, message(0, i, size)) {
				t.Fatalf("message %d was overwritten", i)
			}
		}
	}
}

// Memory is not used again before it is out of use, at members that release what they
// receive, though frames are lost and some wait for a peer whose queue is full.
func TestRecycledMemoryIsOutOfUse(t *testing.T) {
	const members, size = 8, 2000
	for seed := range uint64(20) {
		n := newNetwork(t, members, seed, faults{drop: 0.02, duplicate: 0.02, reorder: 0.05}, func(c *stream.Config) {
			c.KeepBytes, c.SegmentSize = 8*size, size/(1+int(seed)%3)
		})
		sent := map[protocol.Rank][][]byte{}
		for i := range 200 {
			slow := n.members[3]
			slow.full = i%40 > 20
			if i%40 == 0 {
				for _, h := range n.members {
					h.Writable(n.now, slow.rank)
					n.pump(h)
				}
			}
			for _, root := range []protocol.Rank{0, members - 1} {
				sent[root] = append(sent[root], message(root, i, size))
				n.broadcast(root, sent[root][i])
			}
		}
		n.members[3].full = false
		for _, h := range n.members {
			h.Writable(n.now, 3)
			n.pump(h)
		}
		n.run(n.now + minute)
		n.check(sent)
	}
}

// Memory of a segment that is to be sent is not used again, though the segment is kept no
// longer and the program has released it.
func TestMemoryToBeSentIsNotUsedAgain(t *testing.T) {
	const size = 16 << 10
	n := newNetwork(t, 2, 1, faults{}, func(c *stream.Config) {
		if c.Rank == 1 {
			c.KeepBytes = 2 * size
		}
	})
	root, m := n.members[0].Member, n.members[1].Member
	var frames [][]byte
	for i := range 8 {
		if err := root.Write(message(0, i, size), 0); err != nil {
			t.Fatal(err)
		}
		for _, head, body, ok := root.Next(1); ok; _, head, body, ok = root.Next(1) {
			if frame := append(bytes.Clone(head), body...); frame[0] == dataKind {
				frames = append(frames, frame)
			}
		}
	}
	if len(frames) < 4 {
		t.Fatalf("the root has sent %d messages", len(frames))
	}
	for i, frame := range frames {
		readInto(t, m, 0, frame)()
		got, ok := m.Deliver(1)
		if !ok {
			t.Fatal("nothing was delivered")
		}
		m.Release(got.Lease)
		if i == 0 {
			request := append(bytes.Clone(frame[:14]), make([]byte, 16)...) // of segment 0
			request[0], request[1], request[29] = requestKind, 0, 1
			if err := m.Receive(1, 0, request); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, head, body, ok := m.Next(1); ok; _, head, body, ok = m.Next(1) {
		if head[0] == repairKind {
			if !bytes.HasSuffix(append(bytes.Clone(head), body...), message(0, 0, size)) {
				t.Error("another message is sent instead")
			}
			return
		}
	}
	t.Error("nothing was sent")
}
