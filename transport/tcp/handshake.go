package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
)

// maxHandshake is how many bytes are read from a stranger before it is known:
// TLS's own messages, with certificates, and a Hello. Package crypto/tls alone
// would take a certificate message of 256 KiB.
const maxHandshake = 48 << 10

// handshakeConn is a connection whose other side is not known yet. It ends when the
// time is over, when too much has come, or when the context ends.
type handshakeConn struct {
	net.Conn // The socket.
	left     int
	promoted bool
	rawConn  *rawConn    // Once it is known, if there is one.
	stop     func() bool // Stops watching the context.

	stream net.Conn // The socket, or TLS over it.
	in     *wire.Reader
}

func newHandshakeConn(ctx context.Context, cfg *Config, raw net.Conn) *handshakeConn {
	tune(raw, cfg)
	_ = raw.SetDeadline(time.Now().Add(cfg.HandshakeTimeout))
	s := &handshakeConn{Conn: raw, left: maxHandshake}
	s.stop = context.AfterFunc(ctx, func() { _ = raw.Close() })
	return s
}

// Read is the socket's, with the limit.
func (s *handshakeConn) Read(b []byte) (int, error) {
	switch {
	case s.rawConn != nil:
		return s.rawConn.Read(b)
	case s.promoted:
		return s.Conn.Read(b)
	}
	if s.left == 0 {
		return 0, fmt.Errorf("more than %d bytes before the handshake was over", maxHandshake)
	}
	n, err := s.Conn.Read(b[:min(len(b), s.left)])
	s.left -= n
	return n, err
}

// secure sets up the stream: over TLS if it is configured, as server or, with
// the address that was dialed, as client.
func (s *handshakeConn) secure(ctx context.Context, cfg *tls.Config, dialed string) error {
	s.stream = s.Conn
	s.in = wire.NewReader(s, wire.MaxHelloFrame)
	if cfg == nil {
		return nil
	}
	var err error
	s.stream, err = s.handshakeTLS(ctx, cfg, dialed)
	s.in = wire.NewReader(s.stream, wire.MaxHelloFrame)
	return err
}

func (s *handshakeConn) handshakeTLS(ctx context.Context, cfg *tls.Config, dialed string) (net.Conn, error) {
	if dialed == "" {
		c := tls.Server(s, cfg)
		return c, c.HandshakeContext(ctx)
	}
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(dialed)
		if err != nil {
			return nil, err
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	c := tls.Client(s, cfg)
	return c, c.HandshakeContext(ctx)
}

// hello reads the other side's Hello.
func (s *handshakeConn) hello() (wire.Hello, error) {
	body, err := s.in.Next()
	if err != nil {
		return wire.Hello{}, err
	}
	return wire.DecodeHello(body)
}

// promote turns a stranger into the connection to a peer: limits of the
// handshake no longer hold. It returns nil if the context has ended.
func (s *handshakeConn) promote(p *peer) *conn {
	if !s.stop() {
		return nil
	}
	s.promoted = true
	_ = s.SetDeadline(time.Time{})
	s.in.SetLimit(p.t.cfg.MaxFrame)
	c := &conn{peer: p, raw: s.Conn, stream: s.stream, in: s.in, notified: make(chan struct{})}
	s.rawConn = newRawConn(s.Conn)
	if p.t.cfg.TLS == nil {
		c.rawConn = s.rawConn
	}
	return c
}

// close ends what has not become a connection.
func (s *handshakeConn) close() {
	s.stop()
	_ = s.Conn.Close()
}

// hello returns the frame by which this member presents itself.
func (t *Transport) hello(to protocol.Rank, attempt uint64, v wire.Status) []byte {
	h := t.self(to)
	h.Attempt, h.Status = attempt, v
	return wire.AppendFrame(nil, wire.AppendHello(nil, &h))
}

func (t *Transport) self(to protocol.Rank) wire.Hello {
	h := wire.Hello{Group: t.cfg.Group, From: t.cfg.Rank, To: to, Incarnation: t.cfg.Incarnation}
	if !t.cfg.Open {
		h.Size = uint32(len(t.cfg.Addresses))
	}
	return h
}

// check reports why the sender of a Hello is not the given rank of our group;
// protocol.NoRank is a guest.
func (t *Transport) check(theirs *wire.Hello, from protocol.Rank) error {
	ours := t.self(from)
	return ours.Match(theirs)
}

// worthAnswer reports whether who has sent a bad Hello is told who we are: not
// if it does not speak our language at all.
func worthAnswer(err error) bool {
	var version *wire.VersionError
	var hello *wire.HelloError
	return errors.As(err, &version) || errors.As(err, &hello) && hello.Field != "magic"
}
