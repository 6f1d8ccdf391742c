package tcp

// Until the handshake is over, the other side of a connection may be any process. So
// its time, its bytes and its certificates are limited.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/protocol"
)

// maxHandshake bounds the bytes that are read before the handshake is over: the
// messages of TLS, with certificates, and a Hello. Package crypto/tls alone would
// accept a certificate message of 256 KiB.
const maxHandshake = 48 << 10

// handshakeConn is a connection in its handshake. It is closed after
// HandshakeTimeout, after maxHandshake bytes, or when the context ends.
type handshakeConn struct {
	net.Conn // The socket.
	left     int
	promoted bool
	visit    *admission.Visit // nil: this side has dialed.
	rawConn  *rawConn         // Set by promote. nil: not a socket.
	stop     func() bool      // Stops watching the context.

	stream       net.Conn // The socket, or TLS over it.
	in           *wire.Reader
	certificates []*x509.Certificate // The other side's, with TLS.

	keys           []*wire.Key // Those of the secrets, bound to this connection; see Config.keys.
	key            *wire.Key   // The one of this connection: the dialing side chooses. nil: no secret.
	dialed, answer wire.Hello  // Those of the dialing and of the accepting side.
}

func newHandshakeConn(ctx context.Context, cfg *Config, raw net.Conn) *handshakeConn {
	tune(raw, cfg)
	_ = raw.SetDeadline(time.Now().Add(cfg.HandshakeTimeout))
	s := &handshakeConn{Conn: raw, left: maxHandshake}
	s.stop = context.AfterFunc(ctx, func() { _ = raw.Close() })
	return s
}

// Read reads from the socket, up to the limit.
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

// secure sets up the stream, with TLS if it is configured: as the server, or as
// the client if this side has dialed.
func (s *handshakeConn) secure(ctx context.Context, cfg *Config, dialed *Claim) error {
	s.stream, s.keys = s.Conn, cfg.keys()
	if cfg.TLS != nil {
		if err := s.handshakeTLS(ctx, cfg, dialed); err != nil {
			return err
		}
	}
	var stream io.Reader = s // Counts bytes.
	if cfg.TLS != nil {
		stream = s.stream
	}
	s.key = s.keys[0]
	s.in = wire.NewReader(stream, wire.MaxHelloFrame)
	return nil
}

func (s *handshakeConn) handshakeTLS(ctx context.Context, cfg *Config, dialed *Claim) (err error) {
	var c *tls.Conn
	if dialed == nil {
		c, err = acceptTLS(ctx, s, cfg.TLS)
	} else {
		c, err = dialTLS(ctx, s, cfg.TLS, *dialed, cfg.Verify)
	}
	if err != nil {
		return err
	}
	state := c.ConnectionState()
	s.stream, s.certificates = c, state.PeerCertificates
	binding, err := state.ExportKeyingMaterial("EXPORTER-pleach-handshake", nil, 32)
	for i, key := range s.keys {
		s.keys[i] = key.Bind(binding)
	}
	return err
}

// accept does the accepting side's part of the handshake up to the other side's Hello.
func (s *handshakeConn) accept(ctx context.Context, cfg *Config) (err error) {
	if err = s.secure(ctx, cfg, nil); err == nil {
		s.dialed, err = s.hello()
	}
	return err
}

// hello reads the other side's Hello.
func (s *handshakeConn) hello() (wire.Hello, error) {
	body, err := s.in.Next()
	if err != nil {
		return wire.Hello{}, err
	}
	return wire.DecodeHello(body)
}

// readAnswer reads the other side's answer to this side's Hello. An answer in another
// version says that this side's is not spoken there.
func (s *handshakeConn) readAnswer() (wire.Hello, error) {
	theirs, err := s.hello()
	if err == nil && theirs.Version != s.dialed.Version {
		err = &wire.VersionError{Theirs: theirs.Version}
	}
	return theirs, err
}

// promote turns the connection into that of a peer and lifts the limits of the
// handshake. It returns nil if the context has ended.
func (s *handshakeConn) promote(p *peer) *conn {
	if !s.stop() {
		return nil
	}
	s.promoted = true
	_ = s.SetDeadline(time.Time{})
	s.in.SetLimit(p.t.cfg.MaxFrame)
	c := &conn{
		peer: p, raw: s.Conn, stream: s.stream, in: s.in, certificates: s.certificates,
		notified: make(chan struct{}),
	}
	s.rawConn = newRawConn(s.Conn)
	if p.t.cfg.TLS == nil {
		c.rawConn = s.rawConn
	}
	return c
}

// refuse tells the other side why it is refused, and nothing else.
func (s *handshakeConn) refuse(status wire.Status) {
	_, _ = s.stream.Write(s.answerHello(s.dialed.Answer(status)))
}

// close closes a connection that was not promoted.
func (s *handshakeConn) close() {
	s.stop()
	_ = s.Conn.Close()
}

// hello returns this member's Hello. A process that is not known as a peer gets none of
// it, see refuse.
func (t *Transport) hello(to protocol.Rank, attempt uint64) wire.Hello {
	h := t.self(to)
	h.Attempt = attempt
	return h
}

func (t *Transport) self(to protocol.Rank) wire.Hello {
	h := wire.Hello{
		Group: t.cfg.Group, From: t.cfg.Rank, To: to, Incarnation: t.incarnation, Process: t.cfg.Nonce,
		Features: t.cfg.features(),
	}
	if !t.cfg.Open {
		h.Size = uint32(len(t.cfg.Addresses))
	}
	return h
}

// check returns an error if the sender of a Hello is not the given rank of this
// group; protocol.NoRank is a client.
func (t *Transport) check(theirs *wire.Hello, from protocol.Rank) error {
	ours := t.self(from)
	return ours.Match(theirs)
}

// worthAnswer reports whether the sender of a bad Hello gets this member's Hello in
// return. It does not if it does not speak the protocol at all.
func worthAnswer(err error) bool {
	var version *wire.VersionError
	var hello *wire.HelloError
	return errors.As(err, &version) || errors.As(err, &hello) && hello.Field != "magic" ||
		errors.As(err, new(*RefusedError))
}

// statusOf returns the status that the sender of a bad Hello receives.
func statusOf(err error) wire.Status {
	switch {
	case errors.Is(err, ErrSecret):
		return wire.WrongSecret
	case errors.Is(err, ErrCertificate):
		return wire.WrongCertificate
	}
	var hello *wire.HelloError
	if errors.As(err, &hello) {
		switch hello.Field {
		case "group":
			return wire.OtherGroup
		case "rank", "wanted rank":
			return wire.OtherRank
		}
	}
	return wire.Refused
}
