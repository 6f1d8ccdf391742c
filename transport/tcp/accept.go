package tcp

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/pleach-go/pleach/wire"
)

// accept takes connections until the listener is closed.
func (t *Transport) accept() {
	// Every peer may dial twice at a time (one attempt given up, one new), and
	// a few strangers may be looking. More are a flood, and closed unread.
	limit := int64(2*len(t.peers) + 16)
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
		if t.count.handshakes.Add(1) > limit {
			t.count.handshakes.Add(-1)
			t.count.flooded.Add(1)
			_ = raw.Close()
			continue
		}
		t.wg.Go(func() { t.receive(raw) })
	}
}

// receive finds out who has connected, and serves it if it is a peer.
func (t *Transport) receive(raw net.Conn) {
	c, theirs, err := t.identify(raw)
	t.count.handshakes.Add(-1)
	if err != nil {
		t.count.refused.Add(1)
		level := slog.LevelInfo
		if errors.As(err, new(*RefusedError)) {
			level = slog.LevelDebug // A peer, for reasons of which both know.
		}
		t.cfg.Logger.Log(t.ctx, level, "connection refused", "from", raw.RemoteAddr(), "cause", err)
		return
	}
	t.count.accepted.Add(1)
	c.serve(theirs.Incarnation)
}

// identify does the accepting side's handshake.
func (t *Transport) identify(raw net.Conn) (*conn, *wire.Hello, error) {
	s := t.meet(t.ctx, raw)
	if err := s.secure(t.ctx, t.cfg.TLS, ""); err != nil {
		s.close()
		return nil, nil, err
	}
	theirs, err := s.hello()
	if err == nil {
		// From is what it says it is: anybody but us.
		err = t.check(&theirs, theirs.From)
		if err == nil && theirs.From == t.cfg.Rank {
			err = &wire.HelloError{Field: "rank", Got: "ours", Want: "another"}
		}
	}
	if err != nil {
		if worthAnswer(err) {
			_, _ = s.stream.Write(t.hello(theirs.From, 0, wire.Refused))
		}
		s.close()
		return nil, nil, err
	}

	p := t.peer(theirs.From)
	c, verdict := p.admit(s, &theirs)
	if c == nil {
		_, _ = s.stream.Write(t.hello(p.rank, 0, verdict))
		s.close()
		return nil, nil, p.fail(&RefusedError{verdict})
	}
	return c, &theirs, nil
}

// admit decides whether a connection that a peer has opened is to be the one.
func (p *peer) admit(s *stranger, theirs *wire.Hello) (*conn, wire.Verdict) {
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
	c := s.become(p)
	if c == nil {
		return nil, wire.Refused
	}
	p.ours++
	p.attach(c, theirs, p.t.hello(p.rank, p.ours, wire.Welcome))
	return c, wire.Welcome
}
