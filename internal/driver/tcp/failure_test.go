package tcp

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// restart starts a killed member again at its old address.
func restart(t *testing.T, dead *member, incarnation uint64) *member {
	t.Helper()
	cfg := dead.cfg
	cfg.Listener, cfg.Incarnation = nil, incarnation
	return start(t, cfg)
}

func TestPeerIsKilledAndComesBack(t *testing.T) {
	m := startGroup(t, 3, Config{BackoffMin: 50 * time.Millisecond})
	connect(t, m[0], m[1])
	connect(t, m[0], m[2])
	m[1].kill()
	eventually(t, "down", func() bool { return m[0].story(1) == "up 2, down" })
	var peer *PeerError
	if cause := m[0].lastCause(1); !errors.As(cause, &peer) || peer.Peer != 1 ||
		!strings.Contains(cause.Error(), "rank 1") {
		t.Errorf("down because of %v", cause)
	}
	if err := m[0].Send(1, nil); !errors.Is(err, transport.ErrDown) {
		t.Errorf("sent to the dead: %v", err)
	}

	// After a while it is dialed again, fails and is told once each time.
	eventually(t, "a new attempt", func() bool { return m[0].Send(1, nil) == nil })
	eventually(t, "down again", func() bool { return m[0].story(1) == "up 2, down, down" })
	if s := m[0].Stats(); s.DialsFailed != 1 || s.DroppedDown == 0 || s.DroppedLost != 1 {
		t.Errorf("counted %+v", s)
	}
	connect(t, m[0], m[2]) // Nobody else is concerned.

	back := restart(t, m[1], 20)
	eventually(t, "a connection", func() bool {
		return m[0].Send(1, []byte("back")) == nil &&
			m[0].Stats().Connections == 2
	})
	eventually(t, "a frame", func() bool { return len(back.received(0)) > 0 && m[0].story(1) != "" })
	eventually(t, "up again", func() bool { return strings.HasSuffix(m[0].story(1), "down, up 20") })
	connect(t, back, m[0])
	if got := m[0].story(2); got != "up 3" {
		t.Errorf("rank 2, which lives: %s", got)
	}
}

func TestNewIncarnationReplacesAndOldIsRefused(t *testing.T) {
	m := startGroup(t, 2, Config{})
	connect(t, m[1], m[0])

	// A new process of rank 1 connects before the old one's connection is gone.
	cfg := m[1].cfg
	listeners, _ := listen(t, 1)
	cfg.Listener, cfg.Incarnation = listeners[0], 5
	newer := start(t, cfg)
	connect(t, newer, m[0])
	if got := m[0].story(1); got != "up 2, down, up 5" {
		t.Fatalf("told: %s", got)
	}
	if cause := m[0].lastCause(1); !errors.Is(cause, ErrReplaced) {
		t.Errorf("down because of %v", cause)
	}

	// The old one cannot come back.
	eventually(t, "old one is down", func() bool { return strings.HasSuffix(m[1].story(0), "down") })
	eventually(t, "refusal", func() bool {
		_ = m[1].Send(0, nil)
		return errors.Is(m[1].lastCause(0), ErrStale)
	})
	connect(t, newer, m[0])
	if got := m[0].story(1); got != "up 2, down, up 5" {
		t.Errorf("told: %s", got)
	}
	_ = newer.Close()

	// Nor is it listened to if it is dialed: its address is the one we know.
	eventually(t, "refusal by us", func() bool {
		_ = m[0].Send(1, nil)
		return errors.Is(m[0].lastCause(1), ErrStale)
	})
}

// A peer that has lost its connection may dial before we notice.
func TestLostConnectionIsReplaced(t *testing.T) {
	checkGoroutines(t)
	listeners, addresses := listen(t, 2)
	_ = listeners[1].Close()
	m := start(t, Config{Addresses: addresses, Listener: listeners[0]})
	first := dialAs(t, m, wire.Hello{From: 1, Incarnation: 7, Attempt: 1})
	eventually(t, "up", func() bool { return m.story(1) == "up 7" })
	second := dialAs(t, m, wire.Hello{From: 1, Incarnation: 7, Attempt: 3})
	eventually(t, "replaced", func() bool { return m.story(1) == "up 7, down, up 7" })
	if _, err := first.in.Next(); err == nil {
		t.Error("the old connection is open")
	}
	// An attempt of before, which comes late, is not taken for a new one.
	late := dialHello(t, m, wire.Hello{From: 1, Incarnation: 7, Attempt: 2})
	if h, err := late.hello(); err != nil || h.Status != wire.Stale {
		t.Errorf("late attempt: %+v, %v", h, err)
	}
	mustSend(t, m, 1, []byte("x"))
	if f, err := second.in.Next(); err != nil || string(f) != "x" {
		t.Errorf("got %q, %v", f, err)
	}
}

// While two members dial each other and one cannot get through, the other's
// attempt is used in the end.
func TestOnlyOneSideCanDial(t *testing.T) {
	checkGoroutines(t)
	listeners, addresses := listen(t, 3)
	// Rank 0 dials somebody who accepts and says nothing.
	deaf := append([]string(nil), addresses...)
	deaf[1] = addresses[2]
	defer listeners[2].Close()
	zero := start(t, Config{Addresses: deaf[:2], Listener: listeners[0], HandshakeTimeout: 300 * time.Millisecond})
	one := start(t, Config{Addresses: addresses[:2], Rank: 1, Listener: listeners[1]})
	mustSend(t, zero, 1, []byte("lost"))
	eventually(t, "dial", func() bool { return zero.Stats().Dials == 1 })
	mustSend(t, one, 0, []byte("waits"))
	eventually(t, "frame", func() bool { return len(zero.received(1)) == 1 })
	if d := one.Stats().Dials; d < 2 {
		t.Errorf("%d dials; was it not refused at first?", d)
	}
}

// However often connections break, frames arrive at most once and in order, the
// handler is told a consistent story, and in the end there is one connection.
func TestConnectionsThatBreakAllTheTime(t *testing.T) {
	m := startGroup(t, 2, Config{BackoffMin: time.Millisecond, BackoffMax: 2 * time.Millisecond})
	var wg sync.WaitGroup
	end := time.Now().Add(500 * time.Millisecond)
	for from := range m {
		wg.Go(func() {
			pace := time.Tick(10 * time.Microsecond)
			for i := uint32(0); time.Now().Before(end); i++ {
				_ = m[from].Send(protocol.Rank(1-from), wire.AppendUint32(nil, i))
				<-pace
			}
		})
		wg.Go(func() {
			p := m[from].peer(protocol.Rank(1 - from))
			pace := time.Tick(time.Duration(1+from) * time.Millisecond)
			for time.Now().Before(end) {
				p.mu.Lock()
				if p.conn != nil {
					p.conn.close()
				}
				p.mu.Unlock()
				<-pace
			}
		})
	}
	wg.Wait()
	for from := range m {
		last := -1
		for _, f := range m[1-from].received(protocol.Rank(from)) {
			d := wire.NewDecoder(f)
			i := int(d.Uint32())
			if i <= last {
				t.Fatalf("frame %d of rank %d after %d", i, from, last)
			}
			last = i
		}
		t.Logf("rank %d: %+v", from, m[from].Stats())
	}
	for from := range m {
		eventually(t, "a frame", func() bool {
			_ = m[from].Send(protocol.Rank(1-from), []byte("the last"))
			got := m[1-from].received(protocol.Rank(from))
			return len(got) > 0 && string(got[len(got)-1]) == "the last"
		})
	}
	eventually(t, "one connection", func() bool { return m[0].Stats().Connections == 1 && m[1].Stats().Connections == 1 })
}

func TestSlowReaderHoldsUpNobodyElse(t *testing.T) {
	m := startGroup(t, 3, Config{})
	connect(t, m[0], m[1])
	connect(t, m[0], m[2])
	release := m[1].block(0)
	defer release()
	frame := make([]byte, 64<<10)
	sent := 1
	var err error
	for err == nil {
		if err = m[0].Send(1, frame); err == nil {
			sent++
		}
	}
	if !errors.Is(err, transport.ErrFull) {
		t.Fatal(err)
	}
	if w := m[0].peer(1).out.waitingNow(m[0].peer(1)); w > m[0].cfg.QueueBytes {
		t.Errorf("%d bytes wait", w)
	}
	connect(t, m[0], m[2])
	if strings.Contains(m[0].story(1), "writable") {
		t.Error("writable, but the queue is full")
	}
	release()
	eventually(t, "writable", func() bool { return m[0].story(1) == "up 2, writable" })
	mustSend(t, m[0], 1, frame)
	eventually(t, "all frames", func() bool { return len(m[1].received(0)) == sent+1 })
	if s := m[0].Stats(); s.DroppedFull != 1 {
		t.Errorf("counted %+v", s)
	}
}

// waitingNow is for tests, which do not hold the mutex.
func (q *queue) waitingNow(p *peer) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return q.waiting()
}

func TestWritableFollowsWhenAFullQueueIsLost(t *testing.T) {
	m := startGroup(t, 2, Config{MaxFrame: 64 << 10, QueueBytes: 128 << 10})
	connect(t, m[0], m[1])
	release := m[1].block(0)
	defer release()
	var err error
	for err == nil {
		err = m[0].Send(1, make([]byte, 64<<10))
	}
	if !errors.Is(err, transport.ErrFull) {
		t.Fatal(err)
	}
	_ = m[0].socket(1).Close()
	eventually(t, "writable", func() bool { return m[0].story(1) == "up 2, down, writable" })
}

func TestQueueFillsWhileDialing(t *testing.T) {
	checkGoroutines(t)
	listeners, addresses := listen(t, 2)
	defer listeners[1].Close() // It accepts, and says nothing.
	m := start(t, Config{
		Addresses: addresses, Listener: listeners[0],
		MaxFrame: 1000, QueueBytes: 2008, HandshakeTimeout: 100 * time.Millisecond,
	})
	for range 2 {
		mustSend(t, m, 1, make([]byte, 1000))
	}
	if err := m.Send(1, nil); !errors.Is(err, transport.ErrFull) {
		t.Fatal(err)
	}
	eventually(t, "writable", func() bool { return m.story(1) == "down, writable" })
	if s := m.Stats(); s.DroppedLost != 2 {
		t.Errorf("counted %+v", s)
	}
}

func TestFrameOverTheLimit(t *testing.T) {
	checkGoroutines(t)
	listeners, addresses := listen(t, 2)
	small := start(t, Config{Addresses: addresses, Listener: listeners[0], MaxFrame: 1000})
	large := start(t, Config{Addresses: addresses, Rank: 1, Listener: listeners[1]})
	connect(t, large, small)
	mustSend(t, large, 0, make([]byte, 1001))
	eventually(t, "down", func() bool { return small.lastCause(1) != nil })
	var size *wire.SizeError
	if cause := small.lastCause(1); !errors.As(cause, &size) || !strings.Contains(cause.Error(), "rank 1") {
		t.Errorf("down because of %v", cause)
	}
	eventually(t, "down", func() bool { return large.lastCause(0) != nil })
	if n := len(small.received(1)); n != 1 {
		t.Errorf("%d frames", n)
	}
}

func TestCloseFlushesWhatIsQueued(t *testing.T) {
	m := startGroup(t, 2, Config{})
	// The first Send has not even connected yet, and the peer sends too.
	mustSend(t, m[1], 0, []byte("x"))
	const n = 12
	for range n {
		mustSend(t, m[0], 1, make([]byte, 64<<10))
	}
	_ = m[0].Close()
	eventually(t, "all frames", func() bool { return len(m[1].received(0)) == n })
	eventually(t, "down", func() bool { return strings.HasSuffix(m[1].story(0), "down") })
	if cause := m[1].lastCause(0); !errors.Is(cause, io.EOF) {
		t.Errorf("down because of %v", cause)
	}
}

func TestCloseWithFrozenPeers(t *testing.T) {
	checkGoroutines(t)
	listeners, addresses := listen(t, 4)
	for _, l := range listeners[2:] {
		defer l.Close()
	}
	_ = listeners[1].Close()
	m := start(t, Config{Addresses: addresses, Listener: listeners[0]})
	frozen := dialAs(t, m, wire.Hello{From: 1, Incarnation: 1, Attempt: 1})
	eventually(t, "up", func() bool { return m.story(1) == "up 1" })
	var err error
	for err == nil { // Until the queue is full.
		err = m.Send(1, make([]byte, 64<<10))
	}
	for r := protocol.Rank(2); r < 4; r++ {
		mustSend(t, m, r, []byte("nobody answers"))
	}
	mute, err := net.Dial("tcp", m.Addr().String()) // In handshake.
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	eventually(t, "handshake", func() bool { return m.Stats().Handshakes == 1 })

	before := time.Now()
	_ = m.Close()
	testutil.Took(t, "Close", time.Since(before), time.Second)
	told := m.story(1)
	frozen.close()
	time.Sleep(10 * time.Millisecond)
	if got := m.story(1); got != told {
		t.Errorf("told after Close: %s", got)
	}
}

// brokenStream is a connection that takes nothing more.
type brokenStream struct{ net.Conn }

func (brokenStream) Write([]byte) (int, error) { return 0, errors.New("broken") }

// A connection is given up as soon as a write fails, be it by the sender or by the writer's goroutine,
// although its reader has noticed nothing.
func TestFailedWriteEndsTheConnection(t *testing.T) {
	for name, write := range map[string]func(*peer, *conn){
		"writer": func(p *peer, c *conn) {
			c.stream = brokenStream{c.stream}
			c.out.add(&frame{head: []byte("frame")}, 0)
			p.mu.Unlock()
			c.write()
			p.mu.Lock()
		},
		"sender": func(p *peer, c *conn) {
			_ = c.raw.Close()
			if err := p.writeNow(&frame{head: []byte("frame")}); err != transport.ErrDown {
				t.Error(err)
			}
		},
	} {
		m := startGroup(t, 2, Config{})
		connect(t, m[0], m[1])
		p := m[0].peer(1)
		p.mu.Lock()
		c := p.conn
		write(p, c)
		if p.conn == c {
			t.Errorf("%s: the connection is kept", name)
		}
		if n, err := c.writeSome([]byte("more")); n != 0 || err != net.ErrClosed {
			t.Errorf("%s: %d bytes of a connection that was given up, %v", name, n, err)
		}
		p.mu.Unlock()
	}
}

// A peer that cannot be reached is left alone for a while, however much is sent to it.
func TestUnreachablePeerIsLeftAlone(t *testing.T) {
	checkGoroutines(t)
	listeners, addresses := listen(t, 2)
	_ = listeners[1].Close()
	m := start(t, Config{Addresses: addresses, Listener: listeners[0], BackoffMin: time.Hour, BackoffMax: time.Hour})
	mustSend(t, m, 1, []byte("lost"))
	eventually(t, "down", func() bool { return m.lastCause(1) != nil })
	for range 10 {
		if err := m.Send(1, []byte("again")); !errors.Is(err, transport.ErrDown) {
			t.Fatal(err)
		}
	}
	if n := m.Stats().Dials; n != 1 {
		t.Errorf("%d dials", n)
	}
}

// A handler hears nothing more after Close, also of frames that were read before.
func TestClosedTransportPassesNothing(t *testing.T) {
	m := startGroup(t, 2, Config{})
	connect(t, m[0], m[1])
	p := m[1].peer(0)
	p.mu.Lock()
	c := p.conn
	p.mu.Unlock()
	before := len(m[1].received(0))
	_ = m[1].Close()
	c.pass([]byte("late"), nil, false)
	if n := len(m[1].received(0)); n != before {
		t.Errorf("%d frames after Close", n-before)
	}
}

// A queue that was full says so once, when no more than half of it waits.
func TestQueueResumesAtHalf(t *testing.T) {
	q := &queue{buffers: new(buffers)}
	f := &frame{head: make([]byte, 10-wire.HeaderSize)}
	for range 10 {
		if !q.push(f, 100) {
			t.Fatal("full too early")
		}
	}
	if q.push(f, 100) {
		t.Fatal("more than its limit")
	}
	q.take()
	for written := 10; written <= 100; written += 10 {
		if writable := q.wrote(10); writable != (written == 50) {
			t.Errorf("%d of 100 bytes are written: %t", written, writable)
		}
	}
}
