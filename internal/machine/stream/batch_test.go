package stream_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// In a burst small messages travel in batches, and are delivered one by one and in
// order, also those around a message that is too long for a batch.
func TestBurstGoesInBatches(t *testing.T) {
	const messages = 2000
	n := newNetwork(t, 8, 1, faults{}, func(c *stream.Config) { c.OutboxBytes = 1 << 20 })
	var sent [][]byte
	for i := range messages {
		size := i % 200
		if i%500 == 250 {
			size = 100_000
		}
		sent = append(sent, message(0, i, size))
		n.broadcast(0, sent[i])
		n.now += protocol.Time(2e3) // nanoseconds
	}
	n.run(minute)
	n.check(map[protocol.Rank][][]byte{0: sent})
	if s := n.members[0].Stats(); s.Relayed > 3*messages/5 || s.Broadcast != messages {
		t.Errorf("%d messages went in %d segments to each of 3 children", s.Broadcast, s.Relayed/3)
	}
}

// The same on a bad network, which loses whole batches.
func TestBurstOnABadNetwork(t *testing.T) {
	n := newNetwork(t, 8, 2, faults{drop: 0.1, duplicate: 0.1, reorder: 0.1}, nil)
	sent := map[protocol.Rank][][]byte{}
	for i := range 500 {
		for _, root := range []protocol.Rank{0, 5} {
			sent[root] = append(sent[root], message(root, i, 40))
			n.broadcast(root, sent[root][i])
		}
		n.now += protocol.Time(3e3)
	}
	n.run(minute)
	n.check(sent)
}

// What is in flight fits into KeepBytes, batches included: the receiver, which grants
// nothing yet, can still request all of it.
func TestBatchesFitIntoWhatIsKept(t *testing.T) {
	m, err := stream.New(stream.Config{
		Rank: 0, Size: 2, Incarnation: 1, SegmentSize: 128, KeepBytes: 2048,
		OutboxBytes: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	now, bytes := protocol.Time(1e9), 0
	for range 200 {
		if err := m.Write(make([]byte, 30), 0); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		now += 1e6
		for _, frame := range frames(m, now)[1] {
			if frame[0] == dataKind {
				bytes += len(frame)
			}
		}
	}
	if bytes == 0 || bytes > 2048 {
		t.Errorf("%d bytes are in flight, of 2048 that are kept", bytes)
	}
}

// A single message, or a few, are not delayed. In a burst none is delayed for long, nor
// after FlushBatch.
func TestBatchingDelayIsBounded(t *testing.T) {
	m, err := stream.New(stream.Config{Rank: 0, Size: 2, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	now := protocol.Time(1e9)
	write := func() (sent int) {
		now += 1000
		if err := m.Write([]byte("x"), 0); err != nil {
			t.Fatal(err)
		}
		for _, frame := range frames(m, now)[1] {
			if frame[0] == dataKind { // and not an offer
				sent++
			}
		}
		return sent
	}
	for i := range 16 {
		if write() != 1 {
			t.Fatalf("message %d is held up", i)
		}
	}
	if write() != 0 || m.Unwritten() != 0 {
		t.Fatal("a burst is not gathered, or its sender waits")
	}
	due := m.Deadline()
	if due > now+250_000 {
		t.Errorf("held up for %d ns", due-now)
	}
	if sent := frames(m, due); len(sent[1]) != 1 {
		t.Errorf("%d frames when it is due", len(sent[1]))
	}
	now = due
	for write() > 0 { // until it is a burst again
	}
	write()
	m.FlushBatch()
	if sent := frames(m, now); len(sent[1]) != 1 {
		t.Errorf("%d frames in a hurry", len(sent[1]))
	}
	now += 900_000 // a pause, as of a process that waits for a processor
	if write() != 1 {
		t.Error("the first message after a pause is held up")
	}
	if write() != 0 {
		t.Error("a pause has ended the burst")
	}
	now += 1e6
	for i := range 16 {
		if write() != 1 {
			t.Fatalf("message %d after the burst is held up", i)
		}
	}
}

// Messages are a burst by what the program takes between them, however long it takes to
// send each.
func TestBurstOfMessagesThatTakeLongToSend(t *testing.T) {
	for _, c := range []struct {
		program protocol.Time // what it takes between two messages
		burst   bool
	}{{1_000, true}, {25_000, true}, {25_001, false}, {100_000, false}} {
		m, err := stream.New(stream.Config{Rank: 0, Size: 2, Incarnation: 1})
		if err != nil {
			t.Fatal(err)
		}
		now, batched := protocol.Time(1e9), false
		for range 20 {
			now += c.program
			if err := m.Write([]byte("x"), 0); err != nil {
				t.Fatal(err)
			}
			sent := frames(m, now)[1]
			batched = batched || len(sent) == 0
			now += 200_000
			m.Settle(now)
		}
		if batched != c.burst {
			t.Errorf("a message each %d ns: gathered: %t", c.program, batched)
		}
	}
}

// A batch that is cut off, or has too many messages, is refused.
func TestBrokenBatchesAreRefused(t *testing.T) {
	m, data := fed(t, 1, 1, 1, nil)
	head := data[0][:30]
	head[1] = 1 | 32 // begins, and batch
	for _, payload := range [][]byte{{2, 'x'}, {0x80}, bytes.Repeat([]byte{0}, 129)} {
		frame := append(append([]byte(nil), head...), payload...)
		if err := m.Receive(1, 0, frame); !errors.Is(err, stream.ErrFrame) {
			t.Errorf("batch %v: error %v", payload[:1], err)
		}
	}
	if err := m.Receive(1, 0, append(append([]byte(nil), head...), 1, 'a', 0, 2, 'b', 'c')); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a", "", "bc"} {
		if got, ok := m.Deliver(1); !ok || string(got.Data) != want {
			t.Errorf("message %q, want %q", got.Data, want)
		}
	}
}
