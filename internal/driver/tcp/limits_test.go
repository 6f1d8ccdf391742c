package tcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Errors say what to choose instead.
func TestErrorsSayWhatToChoose(t *testing.T) {
	for want, c := range map[string]Config{
		"choose 0 to 1": {Addresses: make([]string, 2), Rank: 2},
		fmt.Sprint("choose at least ", wire.HeaderSize+100): {
			Addresses: []string{"127.0.0.1:0"}, MaxFrame: 100,
			QueueBytes: 99,
		},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	m := startGroup(t, 3, Config{})[1]
	s := &handshakeConn{dialed: m.hello(1, 1), keys: []*wire.Key{nil}}
	s.dialed.From = 3
	var hello *wire.HelloError
	if err := m.checkCaller(s); !errors.As(err, &hello) || hello.Want != "0 to 2, and not 1" {
		t.Error(err)
	}
}

// Every setting is valid at its bound, and not one beyond it.
func TestSettingsAtTheirBounds(t *testing.T) {
	timeouts := map[string]func(*Config, time.Duration){
		"DialTimeout":      func(c *Config, d time.Duration) { c.DialTimeout = d },
		"HandshakeTimeout": func(c *Config, d time.Duration) { c.HandshakeTimeout = d },
		"RequestTimeout":   func(c *Config, d time.Duration) { c.RequestTimeout = d },
		"BackoffMin":       func(c *Config, d time.Duration) { c.BackoffMin = d },
		"UserTimeout":      func(c *Config, d time.Duration) { c.UserTimeout = d },
		"IdleTimeout":      func(c *Config, d time.Duration) { c.IdleTimeout = d },
	}
	check := func(name string, valid bool, change func(*Config)) {
		t.Helper()
		c := Config{Addresses: []string{"127.0.0.1:0", "127.0.0.1:0"}}
		change(&c)
		err := c.checkRank()
		if err == nil {
			_, err = c.complete()
		}
		if (err == nil) != valid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, set := range timeouts {
		check(name, false, func(c *Config) { set(c, -1) })
		check(name, true, func(c *Config) { set(c, 1) })
	}
	check("the last rank", true, func(c *Config) { c.Rank = 1 })
	check("the next one, whose listener is there", false, func(c *Config) { c.Rank, c.Listener = 2, new(net.TCPListener) })
	check("the longest name", true, func(c *Config) { c.Group = strings.Repeat("x", wire.MaxGroup) })
	check("MaxFrame -1", false, func(c *Config) { c.MaxFrame = -1 })
	check("MaxFrame 1", true, func(c *Config) { c.MaxFrame = 1 })
	check("the largest MaxFrame", true, func(c *Config) { c.MaxFrame = math.MaxInt32 })
	check("a larger one", false, func(c *Config) { c.MaxFrame, c.QueueBytes = math.MaxInt32+1, math.MaxInt })
	check("a queue for one frame", true, func(c *Config) { c.MaxFrame, c.QueueBytes = 100, wire.HeaderSize+100 })
	check("a smaller one", false, func(c *Config) { c.MaxFrame, c.QueueBytes = 100, wire.HeaderSize+99 })
	check("SharedBytes -1", false, func(c *Config) { c.SharedBytes = -1 })
	check("one backoff", true, func(c *Config) { c.BackoffMin, c.BackoffMax = time.Second, time.Second })
	check("backoffs the wrong way round", false, func(c *Config) {
		c.BackoffMin, c.BackoffMax = time.Second,
			time.Second-1
	})
	check("the last rank", true, func(c *Config) { c.Rank = 1 })
	check("the last rank of an open group", true, func(c *Config) {
		c.Open, c.Rank, c.Listener = true, MaxRanks-1,
			&net.TCPListener{}
	})
	check("as many addresses as ranks", true, func(c *Config) {
		c.Open, c.Addresses = true,
			slices.Repeat([]string{"a:1"}, MaxRanks)
	})
	check("one too many", false, func(c *Config) {
		c.Open, c.Addresses = true,
			slices.Repeat([]string{"a:1"}, MaxRanks+1)
	})
	check("an open group without addresses", true, func(c *Config) {
		c.Open, c.Addresses, c.Listener = true, nil,
			&net.TCPListener{}
	})
	check("nowhere, with a listener", true, func(c *Config) { c.Addresses[0], c.Listener = "", &net.TCPListener{} })

	set := Config{DialTimeout: 3, Incarnation: 4, Nonce: 5, MaxFrame: 6, QueueBytes: 100}
	if c, err := set.complete(); err != nil || c.DialTimeout != 3 || c.Incarnation != 4 || c.Nonce != 5 ||
		c.MaxFrame != 6 || c.QueueBytes != 100 {
		t.Errorf("what was set became %+v, %v", c, err)
	}
	c, err := Config{MaxFrame: 2 << 20}.complete()
	if err != nil || c.QueueBytes != wire.HeaderSize+2<<20 || c.Incarnation == 0 || c.Nonce == 0 || c.Logger == nil {
		t.Errorf("defaults: %+v, %v", c, err)
	}
}

// A queue gives back the bytes of its frames in their order, however they are taken; it takes no
// more than its limit, apart from one frame; and it says once, when half of that is free, that it
// takes more.
func TestQueueLikeAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 200
		q := &queue{buffers: &buffers{}}
		var want, got, hand []byte
		refused := false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				f := frame{
					make([]byte, rapid.IntRange(0, 30).Draw(t, "head")),
					bytes.Repeat([]byte{byte(len(want))}, rapid.IntRange(0, 250).Draw(t, "body")),
				}
				before := q.waiting()
				fits := before == 0 || before+wire.HeaderSize+f.size() <= limit
				if q.push(&f, limit) != fits {
					t.Fatalf("%d bytes wait, one of %d was taken: %v", before, f.size(), !fits)
				}
				refused = refused || !fits
				if fits {
					header := wire.Header(f.size())
					want = slices.Concat(want, header[:], f.head, f.body)
				}
			case 2:
				if len(hand) == 0 { // a writer has none of it
					n := rapid.IntRange(0, len(q.bytes)).Draw(t, "written")
					got = append(got, q.bytes[:n]...)
					q.skip(n)
				}
			case 3:
				if len(hand) == 0 {
					hand = q.take()
				}
			case 4:
				n := rapid.IntRange(0, len(hand)).Draw(t, "written")
				got, hand = append(got, hand[:n]...), hand[n:]
				writable := q.wrote(n)
				if expected := refused && q.waiting() <= limit/2; writable != expected {
					t.Fatalf("%d bytes wait, writable: %v", q.waiting(), writable)
				}
				refused = refused && !writable
			}
			if q.waiting() != len(want)-len(got) || len(q.bytes) == 0 && q.frames != 0 {
				t.Fatalf("%d bytes wait, want %d; %d frames", q.waiting(), len(want)-len(got), q.frames)
			}
		}
		if all := slices.Concat(got, hand, q.bytes); !bytes.Equal(all, want) {
			t.Fatalf("%d bytes, want %d, or other ones", len(all), len(want))
		}
	})
}

// A frame whose first bytes are written already continues where they end.
func TestQueueContinuesAFrame(t *testing.T) {
	f := frame{[]byte("head"), []byte("body")}
	header := wire.Header(f.size())
	whole := slices.Concat(header[:], f.head, f.body)
	for n := range whole {
		q := &queue{buffers: &buffers{}}
		q.add(&f, n)
		if !bytes.Equal(q.bytes, whole[n:]) || q.frames != 1 {
			t.Errorf("without its first %d bytes: %q", n, q.bytes)
		}
	}
	q := &queue{buffers: &buffers{}}
	q.bytes = make([]byte, 2*corkBytes+1)
	q.skip(len(q.bytes))
	if q.bytes != nil {
		t.Error("an empty queue keeps much memory")
	}
	q.bytes = make([]byte, 2*corkBytes)
	q.skip(len(q.bytes))
	if q.bytes == nil {
		t.Error("an empty queue keeps no memory")
	}
}

// fakeConn is a connection that only knows whether it was closed.
type fakeConn struct {
	net.Conn
	closed bool
}

func (c *fakeConn) Close() error { c.closed = true; return nil }

// When a set is full its oldest connection is closed, and only then.
func TestSetClosesItsOldest(t *testing.T) {
	var set connSet
	conns := make([]*fakeConn, 5)
	for i := range conns {
		conns[i] = &fakeConn{}
		if evicted := set.add(conns[i], 3); evicted != (i >= 3) {
			t.Errorf("connection %d: another one was closed: %v", i, evicted)
		}
		for k := range i + 1 {
			if conns[k].closed != (k <= i-3) {
				t.Errorf("after %d: connection %d is closed: %v", i, k, conns[k].closed)
			}
		}
	}
	set.remove(conns[0]) // it is not in it any more
	set.remove(conns[3])
	if set.add(&fakeConn{}, 3) || conns[2].closed {
		t.Error("one that has gone counts")
	}
}

// What a process lacks itself is told apart from what its peers do, and logged once in a while.
func TestLocalErrors(t *testing.T) {
	for err, local := range map[error]bool{
		syscall.EMFILE: true, syscall.ENFILE: true, syscall.ENOMEM: true, syscall.ENOBUFS: true,
		syscall.ECONNREFUSED: false, errors.New("other"): false, nil: false,
	} {
		if isLocal(err) != local {
			t.Errorf("%v is local: %v", err, !local)
		}
	}
	var log bytes.Buffer
	listeners, addresses := listen(t, 1)
	m := start(t, Config{Addresses: addresses, Listener: listeners[0], Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if at, err := m.LocalError(); err != nil || !at.IsZero() {
		t.Errorf("%v, %v", at, err)
	}
	lines := func() int { return strings.Count(log.String(), "this process is at fault") }
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			m.local.at = time.Now().Add(-localPeriod)
		}
		m.noteLocal("cannot accept", syscall.EMFILE)
		if lines() != want {
			t.Errorf("%d lines, want %d", lines(), want)
		}
	}
	if at, err := m.LocalError(); err != syscall.EMFILE || time.Since(at) > time.Minute {
		t.Errorf("%v, %v", at, err)
	}
}

// A refusal that is part of a group's life is no news.
func TestLevelsOfRefusals(t *testing.T) {
	for err, level := range map[error]slog.Level{
		refused(wire.Duplicate): slog.LevelDebug, refused(wire.Stale): slog.LevelDebug, refused(wire.Early): slog.LevelDebug,
		&formerError{1, 2}: slog.LevelInfo, refused(wire.OtherGroup): slog.LevelInfo,
		refused(wire.WrongSecret): slog.LevelInfo,
	} {
		if got := refusalLevel(err); got != level {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// What Send does not take is counted by its cause.
func TestDropsAreCountedByCause(t *testing.T) {
	var c counters
	for i, err := range []error{
		transport.ErrFull, transport.ErrDown, transport.ErrDown, transport.ErrClosed,
		transport.ErrClosed, transport.ErrClosed,
	} {
		c.dropped(fmt.Errorf("frame %d: %w", i, err))
	}
	if got := [...]uint64{c.droppedFull.Load(), c.droppedDown.Load(), c.droppedOther.Load()}; got != [...]uint64{1, 2, 3} {
		t.Errorf("%v", got)
	}
}

// A table is left when its user has seen enough.
func TestTableIsLeftEarly(t *testing.T) {
	peers := newTable(3 * pageSize)
	for _, r := range []protocol.Rank{1, pageSize - 1, pageSize, 3*pageSize - 1} {
		peers.add(&peer{rank: r})
	}
	for most := 1; most <= 4; most++ {
		n := 0
		for range peers.all() {
			n++
			if n == most {
				break
			}
		}
		if n != most {
			t.Errorf("%d peers, not %d", n, most)
		}
	}
}

// A ring holds as many bytes as it has room for. Each side is woken if it sleeps, once, and the
// producer only when half of the ring is free.
func TestRingAtItsBounds(t *testing.T) {
	const size = 1 << 10
	consumerWoken, producerWoken := 0, 0
	p, c, _ := newRing(size, func() { consumerWoken++ }, func() { producerWoken++ })
	take := func(n int) {
		t.Helper()
		if got, err := c.get(make([]byte, n)); got != n || err != nil {
			t.Fatalf("%d of %d bytes, %v", got, n, err)
		}
	}
	for lap := range 3 {
		consumerWoken, producerWoken = 0, 0
		if rest, err := c.rest(); !rest || err != nil {
			t.Fatalf("lap %d: an empty ring: %v, %v", lap, rest, err)
		}
		if rest, err := p.rest(); rest || err != nil || p.full.Load() != 0 {
			t.Errorf("lap %d: an empty ring lets its producer sleep: %v, %v", lap, rest, err)
		}
		for _, step := range []struct{ put, taken int }{{size - 1, size - 1}, {2, 1}, {1, 0}} {
			if n, err := p.put(make([]byte, step.put)); n != step.taken || err != nil {
				t.Fatalf("lap %d: %d of %d bytes fit, %v", lap, n, step.put, err)
			}
		}
		p.publish()
		p.publish()
		if consumerWoken != 1 {
			t.Errorf("lap %d: the consumer was woken %d times", lap, consumerWoken)
		}
		if rest, err := c.rest(); rest || err != nil || c.asleep.Load() != 0 {
			t.Errorf("lap %d: a full ring lets its consumer sleep: %v, %v", lap, rest, err)
		}
		if rest, err := p.rest(); !rest || err != nil {
			t.Fatalf("lap %d: a full ring: %v, %v", lap, rest, err)
		}
		for i, step := range []struct{ bytes, woken int }{{size/2 - 1, 0}, {1, 1}, {1, 1}} {
			take(step.bytes)
			if producerWoken != step.woken {
				t.Errorf("lap %d, step %d: the producer was woken %d times", lap, i, producerWoken)
			}
		}
		take(size/2 - 1)
		if n, err := c.get(make([]byte, 1)); n != 0 || err != nil {
			t.Errorf("lap %d: %d bytes from nowhere, %v", lap, n, err)
		}
	}
	c.produced.Store(c.position + size + 1)
	if _, err := c.ready(); !errors.Is(err, errRing) {
		t.Errorf("more bytes than fit: %v", err)
	}
	p.consumed.Store(p.position + 1)
	if _, err := p.free(); !errors.Is(err, errRing) {
		t.Errorf("bytes taken that were never put: %v", err)
	}
}

// What the consumer has taken is free for the producer at once.
func TestRingIsFilledAgain(t *testing.T) {
	const size = 1 << 10
	p, c, _ := newRing(size, func() {}, func() {})
	for lap := range 3 {
		if n, err := p.put(make([]byte, size)); n != size || err != nil {
			t.Fatalf("lap %d: %d bytes fit, %v", lap, n, err)
		}
		p.publish()
		if n, err := c.get(make([]byte, size)); n != size || err != nil {
			t.Fatalf("lap %d: %d bytes are taken, %v", lap, n, err)
		}
	}
}

// A busy queue gets its buffer back, and does not grow a new one each time.
func TestBuffersAreUsedAgain(t *testing.T) {
	var b buffers
	for range 100 { // a pool may drop some
		b.put(make([]byte, 1000))
		if cap(b.get()) >= 1000 {
			return
		}
	}
	t.Error("no buffer is used again")
}

// Long writes to a ring are seen before they end.
func TestRingPublishesEarly(t *testing.T) {
	p, c, _ := newRing(4*publishBytes, func() {}, func() {})
	if n, err := p.put(make([]byte, 2*publishBytes+1)); n != 2*publishBytes+1 || err != nil {
		t.Fatal(n, err)
	}
	if n, _ := c.get(make([]byte, 4*publishBytes)); n != 2*publishBytes {
		t.Errorf("%d bytes are seen", n)
	}
}

// A connection is busy if many frames, or long ones, come within a second.
func TestPace(t *testing.T) {
	p := pace{since: time.Now()}
	for i := range 63 {
		if p.busy(0) {
			t.Fatalf("busy after %d frames", i+1)
		}
	}
	if !p.busy(0) || p.busy(0) {
		t.Error("not busy after 64 frames, or twice")
	}
	p = pace{since: time.Now()}
	if p.busy(busyWeight - frameWeight - 1) {
		t.Error("busy after a frame that is a byte too short")
	}
	p = pace{since: time.Now()}
	if !p.busy(busyWeight - frameWeight) {
		t.Error("not busy after a long frame")
	}
	p = pace{since: time.Now().Add(-busyPeriod)}
	if p.busy(busyWeight) {
		t.Error("busy after a second")
	}
}

// Members share no more memory than they may: a quarter of what is left for each connection, in
// two rings.
func TestSharedBytesAtTheirBounds(t *testing.T) {
	for bytes, want := range map[int]int{
		8*minRing - 1: 0, 8 * minRing: minRing, 16*minRing - 1: minRing,
		8 * maxRing: maxRing, 64 * maxRing: maxRing,
	} {
		m := &Transport{cfg: Config{SharedBytes: bytes}}
		if got := m.ringSize(); got != want {
			t.Errorf("of %d bytes: rings of %d, want %d", bytes, got, want)
		}
		m.mapped.Store(int64(bytes))
		if m.ringSize() != 0 || m.reserve(1) {
			t.Error("more than all")
		}
		m.mapped.Store(0)
		if m.reserve(bytes+1) || m.mapped.Load() != 0 || !m.reserve(bytes) || m.mapped.Load() != int64(bytes) {
			t.Errorf("%d of %d bytes are reserved", m.mapped.Load(), bytes)
		}
	}
}

// Two addresses are of one host if they are equal or both loopback.
func TestSameHost(t *testing.T) {
	for _, c := range []struct {
		local, remote net.Addr
		same          bool
	}{
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, true},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2)}, false},
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, true},
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, false},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, false},
		{&net.UnixAddr{}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, false},
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.UnixAddr{}, false},
	} {
		if got := sameHost(addressedConn{local: c.local, remote: c.remote}); got != c.same {
			t.Errorf("%v and %v: %v", c.local, c.remote, got)
		}
	}
}

type addressedConn struct {
	net.Conn
	local, remote net.Addr
}

func (c addressedConn) LocalAddr() net.Addr  { return c.local }
func (c addressedConn) RemoteAddr() net.Addr { return c.remote }

// A known process that has connected anew is none that this member has yet to hear of: when its
// address changes, its connection is closed.
func TestReconnectedPeerIsNoNewcomer(t *testing.T) {
	a, b := startOpen(t, 0, 1, Config{}),
		startOpen(t, 7, 2, Config{BackoffMin: time.Millisecond, BackoffMax: time.Millisecond})
	a.SetPeer(7, b.address())
	connect(t, a, b)
	b.SetPeer(0, a.address())
	b.peer(0).mu.Lock()
	b.peer(0).detach(b.peer(0).conn, io.EOF)
	b.peer(0).mu.Unlock()
	eventually(t, "a new connection", func() bool {
		return b.Send(0, []byte("again")) == nil &&
			strings.HasSuffix(a.story(7), "down, up 2")
	})
	a.SetPeer(7, "127.0.0.1:1")
	expectStory(t, a, 7, "up 2, down, up 2, down")
}

// What waits for a peer is counted; for one that nothing was sent to, and for none, nothing does.
func TestQueued(t *testing.T) {
	m := startOpen(t, 0, 1, Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m.SetPeer(1, l.Addr().String())
	mustSend(t, m, 1, []byte("frame"))
	for peer, want := range map[protocol.Rank]int{1: wire.HeaderSize + 5, 2: 0, 0: 0, -1: 0, MaxRanks: 0} {
		if got := m.Queued(peer); got != want {
			t.Errorf("%d bytes wait for rank %d, want %d", got, peer, want)
		}
	}
}

// A host that comes again and again with nothing to show is turned away unheard, and let in
// later.
func TestHostThatComesTooOften(t *testing.T) {
	m := alone(t, Config{})
	eventually(t, "closed doors", func() bool {
		for range 100 {
			c, err := net.Dial("tcp", m.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Write([]byte("who is there?"))
			_, _ = c.Read(make([]byte, 1))
			_ = c.Close()
		}
		return m.gate.Stats().TurnedAway > 0
	})
	eventually(t, "a peer", func() bool {
		c := dialHello(t, m, wire.Hello{From: 1, Incarnation: 1, Attempt: 1})
		answer, err := c.hello()
		return err == nil && answer.Status == wire.Accepted
	})
}

// A candidate ends the connection of a client that it has answered, and of one that it refuses.
func TestCandidateEndsItsConnections(t *testing.T) {
	listeners, _ := listen(t, 1)
	c, err := NewCandidate(Config{Group: "test", Listener: listeners[0]},
		func(_ transport.Client, b []byte) []byte { return b })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for group, answer := range map[string]string{"test": "request", "other": ""} {
		raw, err := net.Dial("tcp", listeners[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
		hello := wire.Hello{Group: group, From: protocol.NoRank, To: protocol.NoRank}
		_, _ = raw.Write(wire.AppendFrame(wire.AppendFrame(nil, wire.AppendHello(nil, &hello)), []byte("request")))
		all, err := io.ReadAll(raw)
		if errors.Is(err, os.ErrDeadlineExceeded) || answer != "" && !bytes.HasSuffix(all, []byte(answer)) {
			t.Errorf("group %s: %q, %v", group, all, err)
		}
	}
}

// A poll of a connection that there is not, that nothing reads yet or that has
// ended finds nothing.
func TestPollOfNothing(t *testing.T) {
	m := alone(t, Config{})
	for _, peer := range []protocol.Rank{1, 2} {
		if received, ok := m.Poll(peer); received || ok {
			t.Errorf("rank %d: %v, %v", peer, received, ok)
		}
	}
	c := &conn{}
	if received, ok := c.poll(); received || ok {
		t.Error("a connection without a reader is polled")
	}
	c.polls.open, c.polls.err = true, io.EOF
	if received, ok := c.poll(); received || ok {
		t.Error("a connection that has ended is polled")
	}
}
