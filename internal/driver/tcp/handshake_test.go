package tcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// rawClient is the other side of a connection, by hand.
type rawClient struct {
	net.Conn
	in *wire.Reader
}

func (c *rawClient) close() { _ = c.Close() }

func (c *rawClient) hello() (wire.Hello, error) {
	body, err := c.in.Next()
	if err != nil {
		return wire.Hello{}, err
	}
	return wire.DecodeHello(body)
}

// dialRaw connects, and writes bytes.
func dialRaw(t testing.TB, m *member, first []byte) *rawClient {
	t.Helper()
	c, err := net.Dial("tcp", m.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(first); err != nil {
		t.Fatal(err)
	}
	return &rawClient{c, wire.NewReader(c, wire.MaxFrame)}
}

// dialHello sends a Hello that has what the member expects where it has zeros.
func dialHello(t testing.TB, m *member, h wire.Hello) *rawClient {
	t.Helper()
	if h.Group == "" {
		h.Group = m.cfg.Group
	}
	if h.Size == 0 && !m.cfg.Open && h.From != protocol.NoRank {
		h.Size = uint32(len(m.cfg.Addresses))
	}
	return dialRaw(t, m, wire.AppendFrame(nil, wire.AppendHello(nil, &h)))
}

// dialAs is dialHello that is accepted.
func dialAs(t testing.TB, m *member, h wire.Hello) *rawClient {
	t.Helper()
	c := dialHello(t, m, h)
	if answer, err := c.hello(); err != nil || answer.Status != wire.Accepted {
		t.Fatalf("answer %+v, %v", answer, err)
	}
	return c
}

// alone starts rank 0 of 4, without the others.
func alone(t testing.TB, cfg Config) *member {
	t.Helper()
	checkGoroutines(t)
	listeners, addresses := listen(t, 4)
	for _, l := range listeners[1:] {
		_ = l.Close()
	}
	cfg.Addresses, cfg.Listener = addresses, listeners[0]
	return start(t, cfg)
}

// expectClosed waits until the member has ended the connection.
func expectClosed(t testing.TB, c *rawClient) {
	t.Helper()
	var timeout net.Error
	if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("connection is still open: %v", err)
	}
}

func TestHelloThatDoesNotMatchIsAnsweredAndRefused(t *testing.T) {
	m := alone(t, Config{})
	for _, tt := range []struct {
		hello wire.Hello
		want  wire.Status
	}{
		{wire.Hello{From: 1, Group: "other"}, wire.OtherGroup},
		{wire.Hello{From: 1, Size: 5}, wire.Refused},
		{wire.Hello{From: 1, To: 2}, wire.OtherRank},
		{wire.Hello{From: 0}, wire.OtherRank},
	} {
		tt.hello.Incarnation, tt.hello.Attempt = 1, 1
		c := dialHello(t, m, tt.hello)
		answer, err := c.hello()
		if err != nil || answer.Status != tt.want || answer.Process != 0 || answer.Incarnation != 0 {
			t.Errorf("%+v: answer %+v, %v", tt.hello, answer, err)
		}
		expectClosed(t, c)
	}
	eventually(t, "count", func() bool { return m.Stats().Refused == 4 })
	if m.story(0)+m.story(1)+m.story(2) != "" {
		t.Error("the handler was told of unknown processes")
	}
}

func TestOtherVersionIsAnsweredAndRefused(t *testing.T) {
	m := alone(t, Config{})
	h := wire.Hello{Group: "test", Size: 4, From: 1, Incarnation: 1, Attempt: 1}
	body := wire.AppendHello(nil, &h)
	body[5]++ // The version.
	c := dialRaw(t, m, wire.AppendFrame(nil, body))
	if answer, err := c.hello(); err != nil || answer.Status != wire.Refused {
		t.Errorf("answer %+v, %v", answer, err)
	}
	expectClosed(t, c)
}

// The dialing side says what is wrong, whichever side sees it first.
func TestMismatchIsReportedToTheDialer(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(h *wire.Hello) []byte
		is     func(error) bool
	}{
		"version": {
			func(h *wire.Hello) []byte {
				body := wire.AppendHello(nil, h)
				body[5]++
				return body
			},
			func(err error) bool {
				var version *wire.VersionError
				return errors.As(err, &version) && version.Theirs == wire.Version+1
			},
		},
		"group": {
			func(h *wire.Hello) []byte {
				h.Group, h.Status = "other", wire.Refused
				return wire.AppendHello(nil, h)
			},
			func(err error) bool {
				var hello *wire.HelloError
				return errors.As(err, &hello) && hello.Field == "group"
			},
		},
		"rank": {
			func(h *wire.Hello) []byte {
				h.From = 3
				return wire.AppendHello(nil, h)
			},
			func(err error) bool {
				var hello *wire.HelloError
				return errors.As(err, &hello) && hello.Field == "rank"
			},
		},
		"garbage": {
			func(*wire.Hello) []byte { return []byte("220 smtp.example.org ESMTP") },
			func(err error) bool {
				var hello *wire.HelloError
				return errors.As(err, &hello) && hello.Field == "magic"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			listeners, addresses := listen(t, 4)
			m := start(t, Config{Addresses: addresses, Listener: listeners[0]})
			mustSend(t, m, 1, nil)
			c, err := listeners[1].Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for _, l := range listeners {
				defer l.Close()
			}
			h := wire.Hello{Group: "test", Size: 4, From: 1, To: 0, Incarnation: 1, Attempt: 1}
			_, _ = c.Write(wire.AppendFrame(nil, tt.answer(&h)))
			eventually(t, "down", func() bool { return m.lastCause(1) != nil })
			var peer *PeerError
			if cause := m.lastCause(1); !tt.is(cause) || !errors.As(cause, &peer) || peer.Peer != 1 {
				t.Errorf("down because of %v", cause)
			}
		})
	}
}

func TestGarbageIsNotAnswered(t *testing.T) {
	m := alone(t, Config{})
	for _, garbage := range [][]byte{
		[]byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"),
		wire.AppendFrame(nil, []byte("who is there?")),
		{0, 0, 0, 0},
		bytes.Repeat([]byte{0xff}, 10_000),
	} {
		c := dialRaw(t, m, garbage)
		if b, err := io.ReadAll(c); len(b) > 0 {
			t.Errorf("%q: answer %q, %v", garbage[:4], b, err)
		}
	}
}

func TestSilentConnectionsAreClosedInTime(t *testing.T) {
	m := alone(t, Config{HandshakeTimeout: 50 * time.Millisecond})
	expectClosed(t, dialRaw(t, m, []byte{0, 0}))
}

func TestFloodIsBoundedAndPasses(t *testing.T) {
	m := alone(t, Config{HandshakeTimeout: 500 * time.Millisecond})
	limit := 2*4 + 16
	for range limit + 30 {
		dialRaw(t, m, nil)
	}
	eventually(t, "flood", func() bool { return m.Stats().Evicted >= 30 })
	if n := m.Stats().Handshakes; n > limit {
		t.Errorf("%d handshakes at a time", n)
	}
	eventually(t, "end of it", func() bool { return m.Stats().Handshakes == 0 })
	dialAs(t, m, wire.Hello{From: 1, Incarnation: 1, Attempt: 1})
}

// Connections that send nothing, as many as the limit allows, do not keep a member
// out.
func TestSlowHandshakesDoNotKeepMembersOut(t *testing.T) {
	m := alone(t, Config{HandshakeTimeout: time.Hour})
	limit := 2*4 + 16
	var unknown []*rawClient
	for range limit {
		unknown = append(unknown, dialRaw(t, m, nil))
	}
	eventually(t, "full lobby", func() bool { return m.Stats().Handshakes == limit })
	dialAs(t, m, wire.Hello{From: 1, Incarnation: 1, Attempt: 1})
	expectClosed(t, unknown[0])
}

func TestAnnouncedLengthsCostNothing(t *testing.T) {
	m := alone(t, Config{MaxFrame: 1 << 30, QueueBytes: 1<<30 + 4})
	const unknown = 20
	allocated := func() uint64 {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.TotalAlloc
	}
	for name, first := range map[string][]byte{
		"4 GiB": {0xff, 0xff, 0xff, 0xff, 1, 2, 3},
		"4 KiB": {0, 0, 16, 0, 1, 2, 3},
	} {
		before := allocated()
		clients := make([]*rawClient, unknown)
		for i := range clients {
			clients[i] = dialRaw(t, m, first)
		}
		for _, c := range clients {
			_ = c.Conn.(*net.TCPConn).CloseWrite()
			expectClosed(t, c)
		}
		if each := (allocated() - before) / unknown; each > 64<<10 {
			t.Errorf("a process claiming %s has cost %d bytes", name, each)
		}
	}
	// A peer may claim what it likes, too.
	c := dialAs(t, m, wire.Hello{From: 1, Incarnation: 1, Attempt: 1})
	before := allocated()
	_, _ = c.Write([]byte{0x3f, 0, 0, 0, 1, 2, 3})
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	expectClosed(t, c) // when all of it has been read
	if cost := allocated() - before; cost > 1<<20 {
		t.Errorf("a peer's claim has cost %d bytes", cost)
	}
}

// A connection whose handshake is over because its time was up, or because the transport closes, is
// not admitted.
func TestEndedHandshakeIsNotAdmitted(t *testing.T) {
	m := startGroup(t, 2, Config{})[0]
	ended, end := context.WithCancel(t.Context())
	end()
	raw, other := net.Pipe()
	defer other.Close()
	s := newHandshakeConn(ended, &m.cfg, raw)
	s.dialed = wire.Hello{From: 1, Incarnation: 2}
	if c, status := m.peer(1).admit(s); c != nil || status != wire.Refused {
		t.Errorf("%v, %v", c, status)
	}
}
