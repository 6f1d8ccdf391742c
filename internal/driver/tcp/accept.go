package tcp

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// accept accepts connections until the listener is closed.
func (t *Transport) accept() {
	pause := time.Duration(0)
	for {
		raw, err := t.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed) || err != nil && t.state.Load() == closing:
			return
		case err != nil:
			// Probably too many open files: connections wait until one is closed, and
			// every sweep of idle ones may close some.
			pause = min(max(2*pause, 5*time.Millisecond), shortageInterval/2)
			t.noteLocal("cannot accept", err)
			select {
			case <-time.After(pause):
			case <-t.ctx.Done():
				return
			}
			continue
		}
		pause = 0
		visit := t.gate.Enter(raw)
		if visit == nil {
			_ = raw.Close()
			continue
		}
		t.wg.Go(func() {
			s := newHandshakeConn(t.ctx, &t.cfg, raw)
			s.visit = visit
			t.receive(s, s.accept(t.ctx, &t.cfg))
		})
	}
}

// maxNewcomers bounds the connections of processes whose ranks have no address yet. A
// view that this member does not have yet may have many.
const maxNewcomers = 128

// maxHandshakes bounds the handshakes in progress. Every peer may dial twice at a
// time (one attempt abandoned, one new), and a few unknown processes may connect.
// Joiners of an open group and clients come on top. More than that is a flood.
func (t *Transport) maxHandshakes() int {
	limit := 2*len(t.cfg.Addresses) + 16
	if _, answers := t.handler.(transport.RequestHandler); answers || t.cfg.Open {
		limit += maxClients
	}
	return withinFiles(limit)
}

// withinFiles bounds a number of connections of processes that have proved nothing to a
// quarter of the files that this process may have open.
func withinFiles(n int) int {
	if files, ok := admission.OpenFileLimit(); ok {
		n = min(n, int(min(files/4, math.MaxInt32)))
	}
	return max(n, 16)
}

// memberHosts are the accounts at the gate of the members of a view.
type memberHosts struct {
	mu    sync.Mutex
	hosts map[string]bool // nil: not known yet
	view  uint64
}

// isMemberHost reports whether a member of the present view has this account.
func (t *Transport) isMemberHost(account string) bool {
	t.roster.mu.Lock()
	view := t.roster.view
	t.roster.mu.Unlock()
	h := &t.members
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hosts == nil || h.view != view.Number {
		h.hosts, h.view = make(map[string]bool), view.Number
		for _, address := range t.cfg.Addresses {
			h.hosts[admission.AccountOf(address)] = true
		}
		for rank := range view.Ranks {
			if m, ok := memberOf(&view, rank); ok {
				h.hosts[admission.AccountOf(m.Address)] = true
			}
		}
	}
	return h.hosts[account]
}

// receive ends a handshake, in which the other side has sent its Hello unless there was
// an error, and serves the connection of a peer or client.
func (t *Transport) receive(s *handshakeConn, err error) {
	serve, err := t.identify(s, err)
	if err != nil {
		s.visit.Leave(errors.Is(err, ErrDuplicate) || errors.Is(err, ErrStale))
		t.count.refused.Add(1)
		t.logRefused(s.RemoteAddr(), err)
		return
	}
	serve()
}

// logRefused logs that a connection is refused. A process that tries again and again
// is worth one line for each class of causes. One that has closed its connection before it has said
// anything was not refused: healthy peers do so when they have another one.
func (t *Transport) logRefused(from net.Addr, err error) {
	if errors.Is(err, io.EOF) {
		t.cfg.Logger.Debug("connection closed by the other side", "from", from)
		return
	}
	event := "refused " + from.String()
	if host, _, split := net.SplitHostPort(from.String()); split == nil {
		event = "refused " + host
	}
	cause := err
	if p := (*PeerError)(nil); errors.As(err, &p) {
		event, cause = fmt.Sprint("refused rank ", p.Peer), p.Err
	}
	if repeated, changed := t.refusals.Changed(event, cause); changed {
		t.cfg.Logger.Log(t.ctx, refusalLevel(err), "connection refused", "from", from, "cause", err, "repeated", repeated)
	}
}

// refusalLevel returns at which level a refusal is logged.
func refusalLevel(err error) slog.Level {
	switch {
	case errors.As(err, new(*formerError)):
		return slog.LevelInfo
	case errors.Is(err, ErrDuplicate), errors.Is(err, ErrStale), errors.Is(err, ErrEarly):
		return slog.LevelDebug // Both sides have dialed, or the peer tries again: nothing is lost.
	}
	return slog.LevelInfo
}

// identify finds out whether the other side may be what it says it is. It returns the
// function that serves the connection.
func (t *Transport) identify(s *handshakeConn, err error) (serve func(), _ error) {
	if err == nil {
		err = t.checkCaller(s)
	}
	if err == nil && s.dialed.From == protocol.NoRank {
		serve, err = t.acceptClient(s)
	} else if err == nil {
		serve, err = t.acceptPeer(s)
	} else if worthAnswer(err) {
		s.refuse(statusOf(err))
	}
	if err != nil {
		s.close()
	}
	return serve, err
}

// acceptPeer uses the connection of a peer, or says why it does not.
func (t *Transport) acceptPeer(s *handshakeConn) (serve func(), err error) {
	err = t.verify(s.dialed.From, s.certificates)
	if err == nil {
		if status := t.awaitView(&s.dialed); status != wire.Accepted {
			return nil, t.refuse(s, status)
		}
		err = t.verify(s.dialed.From, s.certificates) // The view may be another one now.
	}
	if err != nil {
		s.refuse(statusOf(err))
		return nil, err
	}
	p := t.peer(s.dialed.From)
	status, err := p.challenge(s)
	if err != nil {
		return nil, p.fail(s.RemoteAddr().String(), err)
	}
	var c *conn
	if status == wire.Accepted {
		c, status = p.admit(s)
	}
	if c == nil {
		if s.answer == (wire.Hello{}) {
			s.refuse(status)
		}
		return nil, p.fail(s.RemoteAddr().String(), p.refusal(&s.dialed, status))
	}
	t.count.accepted.Add(1)
	s.visit.Leave(true)
	return func() { c.serve(s.dialed.Incarnation) }, nil
}

// challenge answers the Hello of a peer that has to prove that it knows the secret,
// before the connection is used. Until then this side does not dial the peer: each
// would use another connection.
func (p *peer) challenge(s *handshakeConn) (wire.Status, error) {
	if s.key == nil {
		return wire.Accepted, nil // admit answers
	}
	p.mu.Lock()
	status := p.judge(&s.dialed)
	if status == wire.Accepted {
		p.ours++
		p.challenged++
	}
	attempt := p.ours
	p.mu.Unlock()
	if status != wire.Accepted {
		return status, nil
	}
	_, err := s.stream.Write(s.answerHello(p.t.hello(p.rank, attempt)))
	var code wire.Code
	if err == nil {
		code, err = s.readProof()
	}
	if err == nil {
		err = s.checkProof(code, nil)
	}
	if err != nil {
		p.mu.Lock()
		p.challenged--
		p.mu.Unlock()
	}
	return status, err
}

// checkCaller returns an error if the sender of a Hello is neither a peer nor a
// client, or does not prove that it is. A caller may claim every rank but this
// member's.
func (t *Transport) checkCaller(s *handshakeConn) error {
	from := s.dialed.From
	if err := t.check(&s.dialed, from); err != nil {
		return err
	}
	if err := s.checkHello(); err != nil || from == protocol.NoRank {
		return err
	}
	if !t.isPeer(from) {
		want := fmt.Sprintf("0 to %d, and not %d", t.cfg.ranks()-1, t.cfg.Rank)
		return &wire.HelloError{Field: "rank", Got: fmt.Sprint(from), Want: want}
	}
	return nil
}

// verify returns an error if a process with these certificates must not be the peer of
// a rank.
func (t *Transport) verify(rank protocol.Rank, certificates []*x509.Certificate) error {
	if t.cfg.Verify == nil {
		return nil
	}
	if err := t.cfg.Verify(Claim{Rank: rank, Certificates: certificates}); err != nil {
		return &RefusedError{Reason: fmt.Errorf("%w: %w", ErrCertificate, err)}
	}
	return nil
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

// judge decides whether to use a connection that a peer has opened. The caller holds
// mu.
func (p *peer) judge(theirs *wire.Hello) wire.Status {
	if status := p.t.roster.judge(p.member, theirs); status != wire.Accepted {
		return status // The view has changed meanwhile.
	}
	switch {
	case theirs.Incarnation < p.incarnation,
		theirs.Incarnation == p.incarnation && theirs.Attempt <= p.theirs:
		// A former process of this rank, or a connection that the peer requested
		// before it got the present or last one.
		return wire.Stale
	case p.dial != nil && p.t.cfg.Rank < p.rank:
		// Both sides dial, and the lower rank's connection wins. The peer decides
		// the same when it reads this side's Hello.
		return wire.Duplicate
	}
	return wire.Accepted
}

// admit uses a connection that a peer has opened, if it is still wanted.
func (p *peer) admit(s *handshakeConn) (*conn, wire.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	status := p.judge(&s.dialed)
	if s.key != nil {
		p.challenged--
		if status == wire.Duplicate {
			status = wire.Accepted // This side has waited with its own.
		}
	}
	if status != wire.Accepted {
		return nil, status
	}
	c := s.promote(p)
	if c == nil {
		return nil, wire.Refused
	}
	c.newcomer = p.address == "" || p.incarnation != 0 && s.dialed.Incarnation > p.incarnation
	var greeting []byte
	if s.key == nil {
		p.ours++
		greeting = s.answerHello(p.t.hello(p.rank, p.ours))
	}
	if p.address == "" {
		p.t.newcomers.add(c.raw, maxNewcomers)
	}
	p.attach(c, &s.dialed, greeting)
	return c, wire.Accepted
}
