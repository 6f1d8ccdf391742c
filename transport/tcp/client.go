package tcp

import (
	"net"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

const (
	// MaxRequest is the longest request of a guest, in bytes.
	MaxRequest = wire.MaxHelloFrame
	// maxClients is how many may wait at a time: all who join a group at its
	// start may knock at the same member.
	maxClients = 1024
)

// client is somebody who is not a member, has knocked, and waits for an answer.
// One goroutine reads its connection, and so notices when it hangs up.
type client struct {
	*handshakeConn
	t *Transport

	mu      sync.Mutex
	replied bool
	reply   []byte
}

// acceptClient takes a guest's request, if there is somebody to answer it. It returns
// what serves the guest.
func (t *Transport) acceptClient(s *handshakeConn) (serve func(), err error) {
	handler, status := t.admitClient()
	if status == wire.Accepted {
		defer func() {
			if err != nil {
				t.count.clients.Add(-1)
			}
		}()
	}
	if _, err := s.stream.Write(t.hello(protocol.NoRank, 0, status)); err != nil {
		return nil, err
	}
	if status != wire.Accepted {
		return nil, &RefusedError{status}
	}
	request, err := s.in.Next()
	if err != nil {
		return nil, err
	}
	g := &client{handshakeConn: s, t: t}
	return func() { g.serve(handler, request) }, nil
}

// admitClient decides whether another guest may come in, and counts those who may.
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

// serve waits until there is an answer, the guest hangs up, its time is over, or
// the transport is closed.
func (g *client) serve(handler transport.RequestHandler, request []byte) {
	defer g.t.count.clients.Add(-1)
	defer g.close()
	_ = g.SetDeadline(time.Now().Add(g.t.cfg.RequestTimeout))
	if g.t.state.Load() != running {
		return
	}
	g.t.count.requests.Add(1)
	handler.HandleRequest(request, g.setReply)
	// A guest has nothing more to say. Whatever ends this Read, only an answer
	// is a reason not to hang up.
	_, _ = g.stream.Read(make([]byte, 1))
	g.sendReply()
}

// setReply takes the answer, and wakes the goroutine that serves the guest.
func (g *client) setReply(reply []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.replied {
		return
	}
	g.replied, g.reply = true, reply
	_ = g.SetReadDeadline(time.Unix(1, 0))
}

// sendReply sends the answer, if there is one and it may be sent.
func (g *client) sendReply() {
	g.mu.Lock()
	replied, reply := g.replied, g.reply
	g.replied, g.reply = true, nil // Later ones do not count.
	g.mu.Unlock()
	switch {
	case !replied || g.t.state.Load() != running:
	case len(reply) > g.t.cfg.MaxFrame:
		err := &wire.SizeError{Size: int64(len(reply)), Limit: int64(g.t.cfg.MaxFrame)}
		g.t.cfg.Logger.Warn("guest is not answered", "from", g.RemoteAddr(), "cause", err)
	default:
		header := wire.Header(len(reply))
		parts := net.Buffers{header[:], reply}
		if _, err := parts.WriteTo(g.stream); err != nil {
			g.t.cfg.Logger.Debug("guest is not answered", "from", g.RemoteAddr(), "cause", err)
		}
	}
}
