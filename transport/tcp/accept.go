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

// accept accepts connections until the listener is closed.
func (t *Transport) accept() {
	limit := t.maxHandshakes()
	pause := time.Duration(0)
	for {
		raw, err := t.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed) || err != nil && t.state.Load() == closing:
			return
		case err != nil:
			// Probably too many open files: connections wait until one is closed.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			t.noteLocal("cannot accept", err)
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

// maxHandshakes bounds the handshakes in progress. Every peer may dial twice at a
// time (one attempt abandoned, one new), and a few unknown processes may connect.
// Joiners of an open group and clients come on top. More than that is a flood.
func (t *Transport) maxHandshakes() int {
	limit := 2*len(t.cfg.Addresses) + 16
	if _, answers := t.handler.(transport.RequestHandler); answers || t.cfg.Open {
		limit += maxClients
	}
	return limit
}

// receive does the handshake, and serves the connection of a peer or client.
func (t *Transport) receive(raw net.Conn) {
	serve, err := t.identify(raw)
	t.handshakes.remove(raw)
	if err != nil {
		t.count.refused.Add(1)
		t.logRefused(raw.RemoteAddr(), err)
		return
	}
	serve()
}

// logRefused logs that a connection is refused. A process that tries again and again
// is worth one line for each cause.
func (t *Transport) logRefused(from net.Addr, err error) {
	level, event := slog.LevelInfo, "refused "+from.String()
	if host, _, split := net.SplitHostPort(from.String()); split == nil {
		event = "refused " + host
	}
	cause := err
	if p := (*PeerError)(nil); errors.As(err, &p) {
		event, cause = fmt.Sprint("refused rank ", p.Peer), p.Err
		if !errors.As(err, new(*formerError)) {
			level = slog.LevelDebug // Both sides have dialed: nothing is lost.
		}
	}
	if repeated, changed := t.causes.Changed(event, cause); changed {
		t.cfg.Logger.Log(t.ctx, level, "connection refused", "from", from, "cause", err, "repeated", repeated)
	}
}

// identify does the accepting side of the handshake. It returns the function that
// serves the connection.
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
		return nil, p.fail(raw.RemoteAddr().String(), p.refusal(&theirs, status))
	}
	t.count.accepted.Add(1)
	return func() { c.serve(theirs.Incarnation) }, nil
}

// checkCaller returns an error if the sender of a Hello is neither a peer nor a
// client. A caller may claim every rank but this member's.
func (t *Transport) checkCaller(theirs *wire.Hello) error {
	err := t.check(theirs, theirs.From)
	if err == nil && theirs.From != protocol.NoRank && !t.isPeer(theirs.From) {
		want := fmt.Sprintf("0 to %d, and not %d", t.cfg.ranks()-1, t.cfg.Rank)
		err = &wire.HelloError{Field: "rank", Got: fmt.Sprint(theirs.From), Want: want}
	}
	return err
}

// refusal returns why a connection of a peer is refused.
func (p *peer) refusal(theirs *wire.Hello, status wire.Status) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if theirs.Incarnation < p.incarnation {
		return &formerError{theirs.Incarnation, p.incarnation}
	}
	return refused(status)
}

// admit decides whether to use a connection that a peer has opened.
func (p *peer) admit(s *handshakeConn, theirs *wire.Hello) (*conn, wire.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case theirs.Incarnation < p.incarnation,
		theirs.Incarnation == p.incarnation && theirs.Attempt <= p.theirs:
		// A former process of this rank, or a connection that the peer requested
		// before it got the present or last one.
		return nil, wire.Stale
	case p.dial != nil && p.t.cfg.Rank < p.rank:
		// Both sides dial, and the lower rank's connection wins. The peer decides
		// the same when it reads this side's Hello.
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
