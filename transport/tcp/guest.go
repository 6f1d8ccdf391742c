package tcp

import (
	"net"
	"sync"
	"time"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/wire"
)

const (
	// MaxRequest is the longest request of a guest, in bytes.
	MaxRequest = wire.MaxHelloFrame
	// maxGuests is how many may wait at a time: all who join a group at its
	// start may knock at the same member.
	maxGuests = 1024
)

// guest is somebody who is not a member, has knocked, and waits for an answer.
// One goroutine reads its connection, and so notices when it hangs up.
type guest struct {
	*stranger
	t *Transport

	mu       sync.Mutex
	answered bool
	answer   []byte
}

// letIn takes a guest's request, if there is somebody to answer it. It returns
// what serves the guest.
func (t *Transport) letIn(s *stranger) (serve func(), err error) {
	keeper, verdict := t.greet()
	if verdict == wire.Welcome {
		defer func() {
			if err != nil {
				t.count.guests.Add(-1)
			}
		}()
	}
	if _, err := s.stream.Write(t.hello(protocol.NoRank, 0, verdict)); err != nil {
		return nil, err
	}
	if verdict != wire.Welcome {
		return nil, &RefusedError{verdict}
	}
	request, err := s.in.Next()
	if err != nil {
		return nil, err
	}
	g := &guest{stranger: s, t: t}
	return func() { g.serve(keeper, request) }, nil
}

// greet decides whether another guest may come in, and counts those who may.
func (t *Transport) greet() (transport.RequestHandler, wire.Verdict) {
	keeper, ok := t.handler.(transport.RequestHandler)
	if !ok {
		return nil, wire.NoDoor
	}
	if t.count.guests.Add(1) > maxGuests {
		t.count.guests.Add(-1)
		return nil, wire.Busy
	}
	return keeper, wire.Welcome
}

// serve waits until there is an answer, the guest hangs up, its time is over, or
// the transport is closed.
func (g *guest) serve(keeper transport.RequestHandler, request []byte) {
	defer g.t.count.guests.Add(-1)
	defer g.close()
	_ = g.SetDeadline(time.Now().Add(g.t.cfg.KnockTimeout))
	if g.t.state.Load() != running {
		return
	}
	g.t.count.knocks.Add(1)
	keeper.HandleRequest(request, g.take)
	// A guest has nothing more to say. Whatever ends this Read, only an answer
	// is a reason not to hang up.
	_, _ = g.stream.Read(make([]byte, 1))
	g.reply()
}

// take takes the answer, and wakes the goroutine that serves the guest.
func (g *guest) take(answer []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.answered {
		return
	}
	g.answered, g.answer = true, answer
	_ = g.SetReadDeadline(time.Unix(1, 0))
}

// reply sends the answer, if there is one and it may be sent.
func (g *guest) reply() {
	g.mu.Lock()
	answered, answer := g.answered, g.answer
	g.answered, g.answer = true, nil // Later ones do not count.
	g.mu.Unlock()
	switch {
	case !answered || g.t.state.Load() != running:
	case len(answer) > g.t.cfg.MaxFrame:
		err := &wire.SizeError{Size: int64(len(answer)), Limit: int64(g.t.cfg.MaxFrame)}
		g.t.cfg.Logger.Warn("guest is not answered", "from", g.RemoteAddr(), "cause", err)
	default:
		header := wire.Header(len(answer))
		parts := net.Buffers{header[:], answer}
		if _, err := parts.WriteTo(g.stream); err != nil {
			g.t.cfg.Logger.Debug("guest is not answered", "from", g.RemoteAddr(), "cause", err)
		}
	}
}
