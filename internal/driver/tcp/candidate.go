package tcp

// A process that asks to join has no rank yet, but members have to find out whether
// they can reach it. So it answers requests at its address before it is a member. The
// members that install the view first may dial it before it knows its rank; those
// connections wait for its transport.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// maxCandidateConns bounds the connections of a candidate.
const maxCandidateConns = 256

// Candidate is a process that listens and has no rank yet. It becomes a member by
// [Config.Candidate].
type Candidate struct {
	cfg    Config
	answer func(from transport.Client, request []byte) []byte

	ctx       context.Context // Ends with the candidate, or with its transport.
	cancel    context.CancelFunc
	accepting sync.WaitGroup
	wg        sync.WaitGroup // Every goroutine but that.
	gate      admission.Gate
	held      atomic.Int32 // Connections that wait for the transport.

	taken chan struct{}          // Closed when there is one.
	take  func(s *handshakeConn) // Set before.
}

// NewCandidate returns a candidate that answers the requests of members at once by a
// function. Of the config, Group, Listener, TLS, Verify, Secret and the limits apply.
// The listener must have a SetDeadline, as those of package net do.
func NewCandidate(cfg Config, answer func(from transport.Client, request []byte) []byte) (*Candidate, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	if _, ok := cfg.Listener.(deadliner); !ok {
		return nil, fmt.Errorf("tcp: the listener %T of a candidate has no SetDeadline", cfg.Listener)
	}
	c := &Candidate{cfg: cfg, answer: answer, taken: make(chan struct{})}
	c.gate.Visits = withinFiles(maxCandidateConns)
	c.gate.Waiting = c.gate.Visits
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
		case errors.Is(err, net.ErrClosed), c.isTaken():
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
	visit := c.gate.Enter(raw)
	if visit == nil {
		_ = raw.Close()
		return
	}
	c.wg.Go(func() {
		s := newHandshakeConn(c.ctx, &c.cfg, raw)
		s.visit = visit
		if err := c.identify(s); err != nil {
			c.cfg.Logger.Debug("connection refused", "from", raw.RemoteAddr(), "cause", err)
			visit.Leave(false)
			s.close()
		}
	})
}

// identify answers a request, or lets the connection of a member wait.
func (c *Candidate) identify(s *handshakeConn) error {
	err := s.accept(c.ctx, &c.cfg)
	if err == nil {
		err = c.checkCaller(s)
	}
	if err != nil {
		if worthAnswer(err) {
			s.refuse(statusOf(err))
		}
		return err
	}
	if s.dialed.From != protocol.NoRank {
		return c.hold(s)
	}
	if _, err := s.stream.Write(s.answerHello(s.dialed.Answer(wire.Accepted))); err != nil {
		return err
	}
	request, err := s.request()
	if err != nil {
		return err
	}
	if _, err := s.stream.Write(wire.AppendFrame(nil, c.answer(s.from(), request))); err != nil {
		return err
	}
	s.visit.Leave(true)
	s.close()
	return nil
}

// checkCaller returns an error if the other side is not of the group. What rank it has
// cannot be known yet.
func (c *Candidate) checkCaller(s *handshakeConn) error {
	ours := wire.Hello{Group: c.cfg.Group, Size: s.dialed.Size, From: s.dialed.To, To: s.dialed.From}
	err := ours.Match(&s.dialed)
	if err == nil {
		err = s.checkHello()
	}
	if err == nil && c.cfg.Verify != nil {
		if err = c.cfg.Verify(Claim{Rank: s.dialed.From, Certificates: s.certificates}); err != nil {
			err = &RefusedError{Reason: fmt.Errorf("%w: %w", ErrCertificate, err)}
		}
	}
	return err
}

// hold keeps a connection for the transport. It ends when the other side closes it, if the
// transport does not come within the time of a handshake, or if newer connections need its
// place. A peer says nothing before it has an answer, so a byte ends it, too.
func (c *Candidate) hold(s *handshakeConn) error {
	c.held.Add(1)
	defer c.held.Add(-1)
	ended := make(chan error, 1)
	c.wg.Go(func() {
		_, err := s.stream.Read(make([]byte, 1))
		ended <- err
	})
	select {
	case <-c.taken:
	case err := <-ended:
		return cmp.Or(err, error(refused(wire.Early)))
	}
	_ = s.SetReadDeadline(time.Unix(1, 0))
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		return cmp.Or(err, error(refused(wire.Early)))
	}
	_ = s.SetReadDeadline(time.Now().Add(c.cfg.HandshakeTimeout))
	c.take(s)
	return nil
}

func (c *Candidate) isTaken() bool {
	select {
	case <-c.taken:
		return true
	default:
		return false
	}
}

// handOver stops accepting, and passes the connections that wait, and those whose
// handshake is not over yet, to a transport.
func (c *Candidate) handOver(take func(s *handshakeConn)) {
	c.take = take
	close(c.taken)
	l := c.cfg.Listener.(deadliner)
	_ = l.SetDeadline(time.Unix(1, 0))
	c.accepting.Wait()
	_ = l.SetDeadline(time.Time{})
}
