package tcp

import (
	"bytes"
	"encoding/binary"
	"sync"
	"testing"
)

// Small frames wait for Uncork, and larger ones take them along: order is kept.
func TestCorkedFramesWaitAndKeepTheirOrder(t *testing.T) {
	m := startGroup(t, 2, Config{})
	connect(t, m[0], m[1])
	start := len(m[1].received(0))
	m[0].Cork()
	var sent [][]byte
	send := func(size int) {
		sent = append(sent, bytes.Repeat([]byte{byte(len(sent))}, size))
		mustSend(t, m[0], 1, sent[len(sent)-1])
	}
	before := m[1].Stats().FramesReceived
	for range 10 {
		send(100)
	}
	if n := m[1].Stats().FramesReceived; n != before {
		t.Errorf("%d corked frames have arrived", n-before)
	}
	send(corkFrame + 1)
	eventually(t, "frames before a large one", func() bool { return len(m[1].received(0)) == start+11 })
	for range 10 {
		send(100)
	}
	m[0].Uncork()
	eventually(t, "all frames", func() bool { return len(m[1].received(0)) == start+21 })
	for i, got := range m[1].received(0)[start:] {
		if !bytes.Equal(got, sent[i]) {
			t.Fatalf("frame %d is one of %d bytes of %d", i, len(got), got[0])
		}
	}
}

// Frames that have waited for Uncork do not overtake those that a writer has in hand.
func TestUncorkLeavesTheWriterAlone(t *testing.T) {
	m := startGroup(t, 2, Config{})
	connect(t, m[0], m[1])
	p := m[0].peer(1)
	p.mu.Lock()
	p.out.add(&frame{body: []byte("waits")}, 0)
	p.out.writing = true
	p.mu.Unlock()
	p.uncork()
	p.mu.Lock()
	if p.out.waiting() == 0 {
		t.Error("a frame is written beside the writer")
	}
	p.out.writing = false
	p.startWriter()
	p.mu.Unlock()
	eventually(t, "the frame", func() bool { return len(m[1].received(0)) == 2 })
}

// Several goroutines cork, send and uncork: everything arrives, and each one's
// frames in order.
func TestCorkFromSeveralGoroutines(t *testing.T) {
	m := startGroup(t, 3, Config{})
	connect(t, m[0], m[1])
	connect(t, m[0], m[2])
	const senders, rounds, burst = 4, 50, 5
	start := [3]int{1: len(m[1].received(0)), 2: len(m[2].received(0))}
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range uint32(rounds) {
				m[0].Cork()
				for j := range uint32(burst) {
					frame := binary.BigEndian.AppendUint32([]byte{byte(s)}, i*burst+j)
					if err := m[0].Send(1, frame); err != nil {
						t.Error(err)
					}
					if err := m[0].Send(2, frame); err != nil {
						t.Error(err)
					}
				}
				m[0].Uncork()
			}
		})
	}
	wg.Wait()
	for r := 1; r <= 2; r++ {
		eventually(t, "all frames", func() bool { return len(m[r].received(0)) == start[r]+senders*rounds*burst })
		next := [senders]uint32{}
		for _, frame := range m[r].received(0)[start[r]:] {
			if got := binary.BigEndian.Uint32(frame[1:]); got != next[frame[0]] {
				t.Fatalf("rank %d got frame %d of sender %d, want %d", r, got, frame[0], next[frame[0]])
			}
			next[frame[0]]++
		}
	}
}
