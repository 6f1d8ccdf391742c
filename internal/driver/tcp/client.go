package tcp

// A client is a process that is not a member. It sends one request over a connection
// of its own and waits for the reply.

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

const (
	// MaxRequest is the longest request of a client, in bytes.
	MaxRequest = 4 << 10
	// maxClients bounds the clients that wait at a time, half of them of one host: all
	// processes that join a starting group may ask the same member.
	maxClients = 1024
)

// A request comes before the limits of the handshake are lifted.
var _ [wire.MaxHelloFrame - MaxRequest]struct{}

// client is a client that waits for its reply. One goroutine reads its connection,
// and so notices when the client disconnects.
type client struct {
	*handshakeConn
	t *Transport

	mu      sync.Mutex
	replied bool
	reply   []byte
}

// acceptClient reads a client's request, if the handler answers requests. It
// returns the function that serves the client.
func (t *Transport) acceptClient(s *handshakeConn) (serve func(), err error) {
	if err := t.verify(protocol.NoRank, s.certificates); err != nil {
		s.refuse(statusOf(err))
		return nil, err
	}
	handler, status := t.requestHandler(s)
	if _, err := s.stream.Write(s.answerHello(s.dialed.Answer(status))); err != nil {
		return nil, err
	}
	if status != wire.Accepted {
		return nil, refused(status)
	}
	request, err := s.request()
	if err != nil {
		return nil, err
	}
	if !s.visit.Wait() {
		return nil, refused(wire.Busy)
	}
	c := &client{handshakeConn: s, t: t}
	return func() { c.serve(handler, request) }, nil
}

// request reads a client's request, and the proof that the client knows the secret.
func (s *handshakeConn) request() ([]byte, error) {
	code, err := s.readProof()
	if err != nil {
		return nil, err
	}
	request, err := s.in.Next()
	if err != nil {
		return nil, err
	}
	return request, s.checkProof(code, request)
}

// requestHandler returns what answers a client, and whether another client may wait.
func (t *Transport) requestHandler(s *handshakeConn) (transport.RequestHandler, wire.Status) {
	handler, ok := t.handler.(transport.RequestHandler)
	switch {
	case !ok:
		return nil, wire.Unsupported
	case s.visit.Busy():
		return nil, wire.Busy
	}
	return handler, wire.Accepted
}

// serve waits until there is a reply, the client disconnects, the timeout passes
// or the transport is closed.
func (c *client) serve(handler transport.RequestHandler, request []byte) {
	ctx, cancel := context.WithCancel(c.t.ctx)
	defer cancel()
	answered := false
	// One that has proved that it is of the group is welcome, even if it does not wait.
	defer func() { c.visit.Leave(answered || c.key != nil || c.certificates != nil) }()
	defer c.close()
	_ = c.SetDeadline(time.Now().Add(c.t.cfg.RequestTimeout))
	if c.t.state.Load() != running {
		return
	}
	c.t.count.requests.Add(1)
	handler.HandleRequest(ctx, c.from(), request, c.setReply)
	// A client sends nothing more. The Read ends with the reply, see setReply, or
	// with the connection.
	_, _ = c.stream.Read(make([]byte, 1))
	answered = c.sendReply()
}

// from returns what is known of the client.
func (s *handshakeConn) from() transport.Client {
	return transport.Client{Address: s.RemoteAddr().String(), Certificates: s.certificates}
}

// setReply takes the reply, and wakes the goroutine that serves the client.
func (c *client) setReply(reply []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replied {
		return
	}
	c.replied, c.reply = true, reply
	_ = c.SetReadDeadline(time.Unix(1, 0))
}

// sendReply sends the reply, if there is one and the transport is not closing, and reports
// whether the client has got it.
func (c *client) sendReply() bool {
	c.mu.Lock()
	replied, reply := c.replied, c.reply
	c.replied, c.reply = true, nil // A later reply does not count.
	c.mu.Unlock()
	switch {
	case !replied || c.t.state.Load() != running:
	case len(reply) > c.t.cfg.MaxFrame:
		err := &wire.SizeError{Size: int64(len(reply)), Limit: int64(c.t.cfg.MaxFrame)}
		c.t.cfg.Logger.Warn("client is not answered", "from", c.RemoteAddr(), "cause", err)
	default:
		header := wire.Header(len(reply))
		parts := net.Buffers{header[:], reply}
		_, err := parts.WriteTo(c.stream)
		if err == nil {
			return true
		}
		c.t.cfg.Logger.Debug("client is not answered", "from", c.RemoteAddr(), "cause", err)
	}
	return false
}
