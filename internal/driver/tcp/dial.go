package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/transport"
)

// dial is an attempt to connect to a peer.
type dial struct {
	address string
	ctx     context.Context
	cancel  context.CancelFunc
}

// startDial begins an attempt. The caller holds mu.
func (p *peer) startDial() {
	d := &dial{address: p.address}
	d.ctx, d.cancel = context.WithCancel(p.t.ctx)
	p.dial = d
	p.t.wg.Go(func() { p.run(d) })
}

// run connects, and serves the connection until it ends.
func (p *peer) run(d *dial) {
	defer d.cancel()
	c, theirs, err := p.connect(d)
	if err != nil {
		p.dialFailed(d, err)
		return
	}
	c.serve(theirs.Incarnation)
}

// connect dials until there is an answer. While the peer answers that it dials
// too, connect retries, in case the peer's own attempt fails. Usually the peer's
// attempt succeeds and ends this one.
func (p *peer) connect(d *dial) (*conn, *wire.Hello, error) {
	cfg := &p.t.cfg
	deadline := time.Now().Add(cfg.DialTimeout + cfg.HandshakeTimeout)
	for pause := cfg.BackoffMin; ; pause = min(2*pause, cfg.BackoffMax) {
		c, theirs, err := p.connectOnce(d)
		again := err != nil && (errors.Is(err, ErrDuplicate) || p.isChallenged())
		if !again || time.Now().Add(pause).After(deadline) {
			return c, theirs, err
		}
		select {
		case <-time.After(pause):
		case <-d.ctx.Done():
			return nil, nil, d.ctx.Err()
		}
	}
}

// dial opens a connection.
func (c *Config) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
	defer cancel()
	if c.Dial != nil {
		return c.Dial(ctx, "tcp", address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// connectOnce does the dialing side of the handshake.
func (p *peer) connectOnce(d *dial) (*conn, *wire.Hello, error) {
	p.t.count.dials.Add(1)
	raw, err := p.t.cfg.dial(d.ctx, d.address)
	if err != nil {
		return nil, nil, err
	}
	s := newHandshakeConn(d.ctx, &p.t.cfg, raw)
	var c *conn
	theirs, err := p.present(d, s)
	if err == nil {
		c, err = p.adopt(d, s, theirs)
	}
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return c, theirs, nil
}

// present sends this member's Hello and checks the other side's.
func (p *peer) present(d *dial, s *handshakeConn) (*wire.Hello, error) {
	if err := s.secure(d.ctx, &p.t.cfg, &Claim{Rank: p.rank, Address: d.address}); err != nil {
		return nil, err
	}
	attempt, err := p.nextAttempt(d)
	if err != nil {
		return nil, err
	}
	ours := p.t.hello(p.rank, attempt)
	ours.Version = p.t.roster.version()
	if _, err := s.stream.Write(s.dialHello(ours)); err != nil {
		return nil, err
	}
	theirs, err := s.readAnswer()
	if err != nil {
		return nil, err
	}
	if err := p.t.check(&theirs, p.rank); err != nil {
		return nil, err
	}
	if theirs.Status != wire.Accepted && theirs.Status != wire.Removed {
		return nil, refused(theirs.Status)
	}
	s.answer = theirs
	if err := s.checkAnswer(); err != nil || theirs.Status == wire.Accepted {
		return &theirs, err
	}
	return nil, removedError(&theirs.Removal)
}

// nextAttempt numbers an attempt that is still wanted. An attempt that is not
// wanted must not get a number: it would be higher than that of the connection
// that came first, and the peer would take it for newer.
func (p *peer) nextAttempt(d *dial) (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.dial != d:
		return 0, context.Canceled
	case p.challenged > 0:
		return 0, refused(wire.Duplicate)
	}
	p.ours++
	return p.ours, nil
}

// isChallenged reports whether a connection that the peer has opened is about to be
// used.
func (p *peer) isChallenged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.challenged > 0
}

// adopt makes a dialed connection the peer's, if it is still wanted.
func (p *peer) adopt(d *dial, s *handshakeConn, theirs *wire.Hello) (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dial != d {
		return nil, context.Canceled
	}
	if theirs.Incarnation < p.incarnation || p.member != nil && theirs.Incarnation < p.member.Incarnation {
		// A former process still listens there.
		return nil, refused(wire.Stale)
	}
	if p.member != nil && !isMember(p.member, theirs) {
		return nil, &transport.OtherProcessError{Incarnation: p.member.Incarnation}
	}
	c := s.promote(p)
	if c == nil {
		return nil, context.Canceled
	}
	p.dial = nil
	p.attach(c, theirs, s.proof(nil))
	return c, nil
}

// dialFailed ends an attempt, unless the peer's own attempt has succeeded first.
func (p *peer) dialFailed(d *dial, cause error) {
	p.mu.Lock()
	if p.dial != d {
		p.mu.Unlock()
		return
	}
	notify := p.endDial(cause)
	p.mu.Unlock()

	p.t.count.dialsFailed.Add(1)
	p.logDialFailed(d, cause)
	notify()
}

// logDialFailed logs that a peer cannot be reached, once for each cause.
func (p *peer) logDialFailed(d *dial, cause error) {
	t := p.t
	if isLocal(cause) {
		t.noteLocal("cannot connect", cause)
		return
	}
	if errors.Is(cause, context.Canceled) || errors.Is(cause, ErrDuplicate) {
		return // The peer's own connection comes first, or the transport is closed.
	}
	if repeated, changed := t.causes.Changed(p.dialEvent(), cause); changed {
		t.cfg.Logger.Info("cannot connect", "peer", p.rank, "address", d.address, "cause", cause, "repeated", repeated)
	}
}

// dialEvent names the failures to connect to this peer.
func (p *peer) dialEvent() string { return fmt.Sprint("dial ", p.rank) }

// endDial ends the present attempt and drops the frames that waited for it. It
// returns the function that notifies the handler in order. The caller holds mu.
func (p *peer) endDial(cause error) (notify func()) {
	address := p.dial.address
	p.dial = nil
	full := p.dropQueue()
	p.backOff()
	ticket := p.takeTicket()
	return func() {
		ticket.wait()
		defer ticket.done()
		p.notifyDown(address, cause, full)
	}
}
