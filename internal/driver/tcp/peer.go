package tcp

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// peer is the state of one other member: a connection, an attempt to make one, or
// neither. There are never two at a time.
type peer struct {
	t    *Transport
	rank protocol.Rank

	// handlerMu is held during a call of the handler about this peer.
	handlerMu sync.Mutex

	mu      sync.Mutex // Guards the rest. Never held during a call that blocks.
	address string     // Where to dial it. "": not known.
	conn    *conn      // nil: no connection.
	dial    *dial      // nil: no attempt. Always nil with a connection.

	retiring *conn  // A connection that both sides are about to close, see idle.go.
	out      *queue // The frames that wait for the connection, or for one to be made.
	last     chan struct{}

	challenged int // Connections of the peer that have to prove that it knows the secret.

	corked bool // In the transport's cork, which changes it under mu.

	backoff time.Duration // The last one; it doubles with the next failure.
	retryAt time.Time     // Not to be dialed before.

	// The newest process and connection of the peer; older ones are refused.
	incarnation uint64
	theirs      uint64
	// The process that has this rank in the view, see roster. nil: none has, or there
	// are no views.
	member *transport.Member
	ours   uint64 // Numbers this side's attempts, see wire.Hello.
}

// send takes a frame, or returns why it does not.
func (p *peer) send(f frame) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.t.state.Load() != running {
		return transport.ErrClosed
	}
	if c := p.conn; c != nil {
		c.touch()
		if c.sharing.sent.busy(f.size()) {
			c.share()
		}
	} else if p.dial == nil && p.retiring == nil {
		if !p.dialable() || time.Now().Before(p.retryAt) {
			return transport.ErrDown
		}
		p.startDial()
	}
	if p.conn != nil && !p.out.writing {
		if f.size() <= corkFrame && len(p.out.bytes) <= corkBytes && p.t.cork.add(p) {
			p.out.add(&f, 0)
			return nil
		}
		if p.conn.direct() {
			return p.writeNow(&f)
		}
	}
	if !p.out.push(&f, p.queueLimit(f.size())) {
		return transport.ErrFull
	}
	p.startWriter()
	return nil
}

// writeNow writes the waiting bytes and then a frame, if there is one, as far as the
// socket or the ring takes them. No writer goroutine runs, so the order is kept.
func (p *peer) writeNow(f *frame) error {
	waiting := len(p.out.bytes)
	n, err := p.conn.writeDirect(p.out.bytes, f)
	if err != nil {
		p.detach(p.conn, err)
		return transport.ErrDown
	}
	p.out.skip(min(n, waiting))
	if f != nil && n < waiting+wire.HeaderSize+f.size() {
		p.out.add(f, max(0, n-waiting))
	}
	p.startWriter()
	return nil
}

// attach makes c the connection to this peer. The frames that have waited go out
// after the greeting, which ends the handshake. The caller holds mu.
func (p *peer) attach(c *conn, theirs *wire.Hello, greeting []byte) {
	if p.dial != nil {
		p.dial.cancel()
		p.dial = nil
	}
	if p.conn != nil {
		p.detach(p.conn, ErrReplaced)
	}
	p.conn, c.out, c.incarnation = c, p.out, theirs.Incarnation
	c.allowSharing(theirs)
	c.address = cmp.Or(p.address, c.raw.RemoteAddr().String())
	p.incarnation, p.theirs = theirs.Incarnation, theirs.Attempt
	if p.member != nil && p.member.Nonce == 0 {
		p.member.Nonce = theirs.Process // The first process that connects is the member.
	}
	p.backoff, p.retryAt = 0, time.Time{}
	p.out.bytes = append(greeting, p.out.bytes...)
	c.ticket = p.takeTicket()
	c.touch()
	p.t.count.connections.Add(1)
	p.t.gate.Prove(c.raw.RemoteAddr())
	p.startWriter()
}

// detach closes a connection, if it is still this peer's. Its reader notices, and
// notifies the handler. The caller holds mu.
func (p *peer) detach(c *conn, cause error) {
	if p.conn != c {
		return
	}
	p.conn, c.cause = nil, cause
	p.dropQueue()
	p.backOff()
	p.t.count.connections.Add(-1)
	c.close()
}

// dropQueue drops the frames that have not been written. It reports whether a Send
// has found the queue full.
func (p *peer) dropQueue() (full bool) {
	p.t.count.droppedLost.Add(uint64(p.out.frames))
	full = p.out.full
	p.out = p.t.newQueue()
	return full
}

// backOff sets when to dial again after a failure: exponential backoff with jitter.
func (p *peer) backOff() {
	p.backoff = min(max(2*p.backoff, p.t.cfg.BackoffMin), p.t.cfg.BackoffMax)
	p.retryAt = time.Now().Add(p.backoff - rand.N(p.backoff/2+1))
}

// fail wraps the cause of a peer that is down.
func (p *peer) fail(address string, cause error) error {
	return &PeerError{Peer: p.rank, Address: address, Err: cause}
}

// flushed reports whether no bytes wait to be written.
func (p *peer) flushed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.waiting() == 0
}

// ended closes the outgoing direction, and reports whether the peer has closed
// its own.
func (p *peer) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil && p.out.waiting() == 0 {
		p.conn.closeWrite()
	}
	return p.conn == nil
}

// cut closes the connection, if there is one.
func (p *peer) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		p.detach(p.conn, transport.ErrClosed)
	}
	if p.retiring != nil {
		p.retiring.close()
	}
}
