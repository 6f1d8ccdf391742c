package tcp

// A process that asks to join has no rank yet, but members have to find out whether
// they can reach it. So it answers requests at its address before it is a member. The
// members that install the view first may dial it before it knows its rank; those
// connections wait for its transport.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
)

// maxCandidateConns bounds the connections of a candidate.
const maxCandidateConns = 256

// Candidate is a process that listens and has no rank yet. It becomes a member by
// [Config.Candidate].
type Candidate struct {
	cfg    Config
	answer func(request []byte) []byte

	ctx        context.Context // Ends with the candidate, or with its transport.
	cancel     context.CancelFunc
	accepting  sync.WaitGroup
	wg         sync.WaitGroup // Every goroutine but that.
	handshakes connSet

	mu      sync.Mutex
	waiting []*handshakeConn       // They wait for the transport.
	take    func(s *handshakeConn) // Set when there is one.
}

// NewCandidate returns a candidate that answers the requests of members at once by a
// function. Of the config, Group, Listener, TLS, Verify, Secret and the limits apply.
// The listener must have a SetDeadline, as those of package net do.
func NewCandidate(cfg Config, answer func(request []byte) []byte) (*Candidate, error) {
	cfg, err := cfg.complete()
	if _, ok := cfg.Listener.(deadliner); err == nil && !ok {
		err = fmt.Errorf("the listener %T of a candidate has no SetDeadline", cfg.Listener)
	}
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	c := &Candidate{cfg: cfg, answer: answer}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.accepting.Go(c.accept)
	return c, nil
}

type deadliner interface{ SetDeadline(time.Time) error }

// Close ends a candidate that has not become a member, and closes its listener.
func (c *Candidate) Close() error {
	err := c.cfg.Listener.Close()
	c.cancel()
	c.accepting.Wait()
	c.wg.Wait()
	return err
}

// accept accepts connections until the listener is closed or has a transport.
func (c *Candidate) accept() {
	for {
		raw, err := c.cfg.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed), c.taken():
			if err == nil {
				c.receive(raw)
			}
			return
		case err != nil:
			time.Sleep(5 * time.Millisecond) // Probably too many open files.
			continue
		}
		c.receive(raw)
	}
}

func (c *Candidate) receive(raw net.Conn) {
	c.handshakes.add(raw, maxCandidateConns)
	c.wg.Go(func() {
		s := newHandshakeConn(c.ctx, &c.cfg, raw)
		if err := c.identify(s); err != nil {
			c.cfg.Logger.Debug("connection refused", "from", raw.RemoteAddr(), "cause", err)
			c.handshakes.remove(raw)
			s.close()
		}
	})
}

// identify answers a request, or lets the connection of a member wait.
func (c *Candidate) identify(s *handshakeConn) error {
	err := s.accept(c.ctx, &c.cfg)
	if err != nil && !worthAnswer(err) {
		return err
	}
	if err == nil && s.dialed.From != protocol.NoRank {
		c.hold(s)
		return nil
	}
	ours := wire.Hello{Group: c.cfg.Group, From: protocol.NoRank, To: protocol.NoRank}
	if err == nil {
		err = ours.Match(&s.dialed)
	}
	if err == nil {
		err = s.checkHello()
	}
	if err != nil {
		ours.Status = statusOf(err)
		_, _ = s.stream.Write(s.answerHello(ours))
		return err
	}
	if _, err := s.stream.Write(s.answerHello(ours)); err != nil {
		return err
	}
	request, err := s.request()
	if err != nil {
		return err
	}
	if _, err := s.stream.Write(wire.AppendFrame(nil, c.answer(request))); err != nil {
		return err
	}
	c.handshakes.remove(s.Conn)
	s.close()
	return nil
}

// hold keeps a connection for the transport, or passes it on.
func (c *Candidate) hold(s *handshakeConn) {
	c.mu.Lock()
	take := c.take
	if take == nil {
		c.waiting = append(c.waiting, s)
	}
	c.mu.Unlock()
	if take != nil {
		take(s)
	}
}

func (c *Candidate) taken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take != nil
}

// handOver stops accepting, and passes the connections that wait, and those whose
// handshake is not over yet, to a transport.
func (c *Candidate) handOver(take func(s *handshakeConn)) {
	c.mu.Lock()
	waiting := c.waiting
	c.waiting, c.take = nil, func(s *handshakeConn) {
		c.handshakes.remove(s.Conn)
		take(s)
	}
	c.mu.Unlock()
	for _, s := range waiting {
		c.wg.Go(func() { c.take(s) })
	}
	l := c.cfg.Listener.(deadliner)
	_ = l.SetDeadline(time.Unix(1, 0))
	c.accepting.Wait()
	_ = l.SetDeadline(time.Time{})
}
