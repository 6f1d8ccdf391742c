package tcp

// A client is a process that is not a member. It sends one request over a connection
// of its own and waits for the reply.

import (
	"net"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

const (
	// MaxRequest is the longest request of a client, in bytes.
	MaxRequest = 4 << 10
	// maxClients bounds the clients that wait at a time: all processes that join
	// a starting group may ask the same member.
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
	handler, status := t.admitClient()
	if status == wire.Accepted {
		defer func() {
			if err != nil {
				t.count.clients.Add(-1)
			}
		}()
	}
	if _, err := s.stream.Write(s.answerHello(t.hello(protocol.NoRank, 0, status))); err != nil {
		return nil, err
	}
	if status != wire.Accepted {
		return nil, refused(status)
	}
	request, err := s.request()
	if err != nil {
		return nil, err
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

// admitClient decides whether another client may wait, and counts it if so.
func (t *Transport) admitClient() (transport.RequestHandler, wire.Status) {
	handler, ok := t.handler.(transport.RequestHandler)
	if !ok {
		return nil, wire.Unsupported
	}
	if t.count.clients.Add(1) > maxClients {
		t.count.clients.Add(-1)
		return nil, wire.Busy
	}
	return handler, wire.Accepted
}

// serve waits until there is a reply, the client disconnects, the timeout passes
// or the transport is closed.
func (c *client) serve(handler transport.RequestHandler, request []byte) {
	defer c.t.count.clients.Add(-1)
	defer c.close()
	_ = c.SetDeadline(time.Now().Add(c.t.cfg.RequestTimeout))
	if c.t.state.Load() != running {
		return
	}
	c.t.count.requests.Add(1)
	handler.HandleRequest(request, c.setReply)
	// A client sends nothing more. The Read ends with the reply, see setReply, or
	// with the connection.
	_, _ = c.stream.Read(make([]byte, 1))
	c.sendReply()
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

// sendReply sends the reply, if there is one and the transport is not closing.
func (c *client) sendReply() {
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
		if _, err := parts.WriteTo(c.stream); err != nil {
			c.t.cfg.Logger.Debug("client is not answered", "from", c.RemoteAddr(), "cause", err)
		}
	}
}
