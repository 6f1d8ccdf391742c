package mem_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/mem"
)

// journal is a handler that writes down what it is told, one line each. If it
// has a gate, each Receive waits for a token from it.
type journal struct {
	mu    sync.Mutex
	lines []string
	gate  chan struct{}
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) Receive(from protocol.Rank, frame []byte) {
	if j.gate != nil {
		<-j.gate
	}
	j.add("%d: %s", from, frame)
}

func (j *journal) Up(peer protocol.Rank, incarnation uint64) { j.add("up %d.%d", peer, incarnation) }
func (j *journal) Down(peer protocol.Rank, cause error)      { j.add("down %d: %v", peer, cause) }
func (j *journal) Writable(peer protocol.Rank)               { j.add("writable %d", peer) }

// read waits until nothing moves any more, and returns and clears the lines.
func (j *journal) read() []string {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

func (j *journal) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := j.read(); !slices.Equal(got, want) {
		t.Errorf("handler was told %q, want %q", got, want)
	}
}

// start starts a member and closes it at the end of the bubble.
func start(t *testing.T, m transport.Transport, j *journal) transport.Transport {
	t.Helper()
	if err := m.Start(j); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func send(t *testing.T, m transport.Transport, to protocol.Rank, frame string, want error) {
	t.Helper()
	err := m.Send(to, []byte(frame))
	if !errors.Is(err, want) {
		t.Fatalf("Send(%d, %q) = %v, want %v", to, frame, err, want)
	}
	var named *transport.SendError
	if want != nil && (!errors.As(err, &named) || named.To != to) {
		t.Fatalf("Send(%d) = %#v, which does not name the rank", to, err)
	}
}

func TestFirstContactTellsUpOnBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(3, mem.Config{})
		var a, b, c journal
		m := start(t, net.Member(0), &a)
		start(t, net.Member(1), &b)
		start(t, net.Member(2), &c)
		send(t, m, 1, "x", nil)
		send(t, m, 1, "y", nil)
		a.expect(t, "up 1.1")
		b.expect(t, "up 0.1", "0: x", "0: y")
		c.expect(t)
	})
}

func TestSendLendsItsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(2, mem.Config{})
		var a, b journal
		m := start(t, net.Member(0), &a)
		start(t, net.Member(1), &b)
		frame := []byte("before")
		if err := m.Send(1, frame); err != nil {
			t.Fatal(err)
		}
		copy(frame, "after!")
		b.expect(t, "up 0.1", "0: before")
	})
}

func TestDownIsToldOncePerOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(2, mem.Config{})
		var a, b journal
		m := start(t, net.Member(0), &a)
		send(t, m, 1, "lost", transport.ErrDown)
		send(t, m, 1, "lost", transport.ErrDown)
		a.expect(t, "down 1: mem: rank 1: not started")

		start(t, net.Member(1), &b)
		send(t, m, 1, "x", nil)
		a.expect(t, "up 1.1")
		net.Kill(1)
		send(t, m, 1, "lost", transport.ErrDown)
		a.expect(t, "down 1: mem: rank 1: killed")
		b.expect(t, "up 0.1", "0: x")
	})
}

func TestNobodyIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(2, mem.Config{})
		m := start(t, net.Member(0), new(journal))
		for _, to := range []protocol.Rank{-1, 0, 2} {
			send(t, m, to, "x", transport.ErrDown)
		}
	})
}

func TestRestartHasTheNextIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(2, mem.Config{})
		var a, b, reborn journal
		old := start(t, net.Member(0), &a)
		m := start(t, net.Member(1), &b)
		send(t, old, 1, "last words", nil)
		net.Kill(0)
		send(t, old, 1, "ghost", transport.ErrClosed)

		again := start(t, net.Restart(0), &reborn)
		if again != net.Member(0) {
			t.Error("Member does not return the restarted transport")
		}
		send(t, again, 1, "back", nil)
		b.expect(t, "up 0.1", "0: last words", "down 0: mem: rank 0: killed", "up 0.2", "0: back")
		send(t, m, 0, "hello", nil)
		reborn.expect(t, "up 1.1", "1: hello")
	})
}

func TestFullQueueBecomesWritable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(3, mem.Config{QueueBytes: 4 * (64 + 1)})
		var a, c journal
		b := journal{gate: make(chan struct{})}
		m := start(t, net.Member(0), &a)
		start(t, net.Member(1), &b)
		start(t, net.Member(2), &c)
		for range 4 {
			send(t, m, 1, "x", nil)
		}
		send(t, m, 1, "y", transport.ErrFull)
		send(t, m, 1, "y", transport.ErrFull)
		// A stuck handler holds up nobody else.
		send(t, m, 2, "z", nil)
		c.expect(t, "up 0.1", "0: z")
		a.expect(t, "up 1.1", "up 2.1")

		b.gate <- struct{}{}
		a.expect(t)
		b.gate <- struct{}{}
		a.expect(t, "writable 1")
		send(t, m, 1, "y", nil)
		close(b.gate)
		b.expect(t, "up 0.1", "0: x", "0: x", "0: x", "0: x", "0: y")
		a.expect(t) // One Room for one full queue.
	})
}

func TestEmptyQueueTakesAnyFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(2, mem.Config{QueueBytes: 1})
		b := journal{gate: make(chan struct{})}
		m := start(t, net.Member(0), new(journal))
		start(t, net.Member(1), &b)
		send(t, m, 1, "long", nil)
		send(t, m, 1, "", transport.ErrFull)
		close(b.gate)
		b.expect(t, "up 0.1", "0: long")
	})
}

func TestCloseEndsTheHandlerAndTellsPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(2, mem.Config{})
		var a, b journal
		m := start(t, net.Member(0), &a)
		peer := start(t, net.Member(1), &b)
		send(t, m, 1, "x", nil)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		b.expect(t, "up 0.1", "0: x", "down 0: mem: rank 0: transport closed")
		a.read()
		send(t, peer, 0, "lost", transport.ErrDown)
		send(t, m, 1, "lost", transport.ErrClosed)
		a.expect(t)
		if err := m.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		if err := m.Start(&a); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Start after Close: %v", err)
		}
		if err := peer.Start(&b); err == nil {
			t.Error("second Start: no error")
		}
	})
}

func TestCloseWaitsForTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(2, mem.Config{})
		b := journal{gate: make(chan struct{})}
		m := start(t, net.Member(0), new(journal))
		peer := start(t, net.Member(1), &b)
		send(t, m, 1, "x", nil)
		send(t, m, 1, "y", nil)
		synctest.Wait()
		closed := false
		go func() {
			peer.Close()
			closed = true
		}()
		synctest.Wait()
		if closed {
			t.Error("Close returned while the handler was called")
		}
		close(b.gate)
		b.expect(t, "up 0.1", "0: x")
		if !closed {
			t.Error("Close did not return")
		}
	})
}

func TestTheDeadAreNotWritable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(2, mem.Config{QueueBytes: 1})
		var a journal
		b := journal{gate: make(chan struct{})}
		m := start(t, net.Member(0), &a)
		start(t, net.Member(1), &b)
		send(t, m, 1, "x", nil)
		send(t, m, 1, "y", transport.ErrFull)
		synctest.Wait()
		net.Kill(1)
		close(b.gate)
		a.expect(t, "up 1.1", "down 1: mem: rank 1: killed")
		b.expect(t, "up 0.1", "0: x")
	})
}

// TestOrderHolds has every member send to every other at once, and asks for the
// order between each two, and that nothing is lost.
func TestOrderHolds(t *testing.T) {
	const size, frames = 8, 200
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(size, mem.Config{})
		journals := make([]journal, size)
		for i := range journals {
			start(t, net.Member(protocol.Rank(i)), &journals[i])
		}
		for from := range protocol.Rank(size) {
			m := net.Member(from)
			go func() {
				for i := range frames {
					for to := range protocol.Rank(size) {
						if to != from {
							m.Send(to, fmt.Appendf(nil, "%03d", i))
						}
					}
				}
			}()
		}
		for to := range journals {
			next := make(map[string]int)
			for _, line := range journals[to].read() {
				var from, i int
				if _, err := fmt.Sscanf(line, "%d: %d", &from, &i); err != nil {
					continue // Up.
				}
				key := fmt.Sprint(from)
				if i != next[key] {
					t.Fatalf("rank %d got frame %d of rank %d, want %d", to, i, from, next[key])
				}
				next[key]++
			}
			for from, n := range next {
				if n != frames {
					t.Errorf("rank %d got %d frames of rank %s, want %d", to, n, from, frames)
				}
			}
			if len(next) != size-1 {
				t.Errorf("rank %d heard %d others, want %d", to, len(next), size-1)
			}
		}
	})
}

// TestKillWhileSending looks for races and deadlocks: members die, come back and
// close while all talk.
func TestKillWhileSending(t *testing.T) {
	const size = 4
	net := mem.NewNetwork(size, mem.Config{QueueBytes: 1 << 10})
	for i := range protocol.Rank(size) {
		start(t, net.Member(i), new(journal))
	}
	var all sync.WaitGroup
	for from := range protocol.Rank(size) {
		all.Go(func() {
			for i := range 500 {
				net.Member(from).Send((from+1)%size, []byte("x"))
				if i%100 == 50 {
					net.Kill((from + 2) % size)
					net.Restart((from + 2) % size).Start(new(journal))
				}
			}
		})
	}
	all.Wait()
	for i := range protocol.Rank(size) {
		if err := net.Member(i).Close(); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	net := mem.NewNetwork(2, mem.Config{QueueBytes: 1 << 30})
	sender, receiver := net.Member(0), net.Member(1)
	if err := errors.Join(sender.Start(new(journal)), receiver.Start(new(deaf))); err != nil {
		b.Fatal(err)
	}
	frame := make([]byte, 64)
	for b.Loop() {
		if err := sender.Send(1, frame); err != nil && !errors.Is(err, transport.ErrFull) {
			b.Fatal(err)
		}
	}
	sender.Close()
	receiver.Close()
}

// deaf is a journal that does not write down frames.
type deaf struct{ journal }

func (*deaf) Receive(protocol.Rank, []byte) {}
