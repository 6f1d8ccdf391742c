package tcp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// accept takes connections until the listener is closed.
func (t *Transport) accept() {
	limit := t.maxHandshakes()
	pause := time.Duration(0)
	for {
		raw, err := t.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed) || err != nil && t.state.Load() == closing:
			return
		case err != nil:
			// Too many open files, likely: connections wait until there is one.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			t.cfg.Logger.Warn("cannot accept", "cause", err, "retry", pause)
			select {
			case <-time.After(pause):
			case <-t.ctx.Done():
				return
			}
			continue
		}
		pause = 0
		if t.handshakes.add(raw, limit) {
			t.count.evicted.Add(1)
		}
		t.wg.Go(func() { t.receive(raw) })
	}
}

// maxHandshakes is how many may be under way. Every peer may dial twice at a
// time (one attempt given up, one new), and a few strangers may be looking. Who
// comes to an open group, or to ask something, comes on top. More are a flood.
func (t *Transport) maxHandshakes() int {
	limit := 2*len(t.cfg.Addresses) + 16
	if _, answers := t.handler.(transport.RequestHandler); answers || t.cfg.Open {
		limit += maxClients
	}
	return limit
}

// receive finds out who has connected, and serves it if it is a peer or a guest.
func (t *Transport) receive(raw net.Conn) {
	serve, err := t.identify(raw)
	t.handshakes.remove(raw)
	if err != nil {
		t.count.refused.Add(1)
		level := slog.LevelInfo
		if errors.As(err, new(*RefusedError)) {
			level = slog.LevelDebug // A peer, for reasons of which both know.
		}
		t.cfg.Logger.Log(t.ctx, level, "connection refused", "from", raw.RemoteAddr(), "cause", err)
		return
	}
	serve()
}

// identify does the accepting side's handshake. It returns what serves the
// connection.
func (t *Transport) identify(raw net.Conn) (serve func(), err error) {
	s := newHandshakeConn(t.ctx, &t.cfg, raw)
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.secure(t.ctx, t.cfg.TLS, ""); err != nil {
		return nil, err
	}
	theirs, err := s.hello()
	if err == nil {
		err = t.checkCaller(&theirs)
	}
	if err != nil {
		if worthAnswer(err) {
			_, _ = s.stream.Write(t.hello(theirs.From, 0, wire.Refused))
		}
		return nil, err
	}
	if theirs.From == protocol.NoRank {
		return t.acceptClient(s)
	}

	p := t.peer(theirs.From)
	c, status := p.admit(s, &theirs)
	if c == nil {
		_, _ = s.stream.Write(t.hello(p.rank, 0, status))
		return nil, p.fail(raw.RemoteAddr().String(), &RefusedError{status})
	}
	t.count.accepted.Add(1)
	return func() { c.serve(theirs.Incarnation) }, nil
}

// checkCaller reports why who has connected is neither a peer nor a guest. It is
// whom it says it is: anybody but us.
func (t *Transport) checkCaller(theirs *wire.Hello) error {
	err := t.check(theirs, theirs.From)
	if err == nil && theirs.From != protocol.NoRank && !t.isPeer(theirs.From) {
		want := fmt.Sprintf("0 to %d, and not %d", t.cfg.ranks()-1, t.cfg.Rank)
		err = &wire.HelloError{Field: "rank", Got: fmt.Sprint(theirs.From), Want: want}
	}
	return err
}

// admit decides whether a connection that a peer has opened is to be the one.
func (p *peer) admit(s *handshakeConn, theirs *wire.Hello) (*conn, wire.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case theirs.Incarnation < p.incarnation,
		theirs.Incarnation == p.incarnation && theirs.Attempt <= p.theirs:
		// A former process of this rank; or a connection that the peer asked
		// for before it got the one we have, or had.
		return nil, wire.Stale
	case p.dial != nil && p.t.cfg.Rank < p.rank:
		// Both dial, and ours wins. The peer will come to the same conclusion
		// when it sees our Hello.
		return nil, wire.Duplicate
	}
	c := s.promote(p)
	if c == nil {
		return nil, wire.Refused
	}
	c.newcomer = p.address == "" || p.incarnation != 0 && theirs.Incarnation > p.incarnation
	p.ours++
	p.attach(c, theirs, p.t.hello(p.rank, p.ours, wire.Accepted))
	return c, wire.Accepted
}
