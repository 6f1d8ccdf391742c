package tcp

import (
	"time"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

var _ transport.AddressBook = (*Transport)(nil)

// SetPeer sets the address of a rank, which the next Send dials. With "", the rank
// is vacant and Send returns [transport.ErrDown], unless a process connects as this
// rank in an open group.
//
// If the address changes, SetPeer closes the connection, and Down follows with
// [ErrMoved]. It keeps a connection that a newcomer has opened: a process newer
// than the last known one, or the first known one. The newcomer may have learned
// its rank before this member did, and closing its connection would make each
// take the other for dead. Config.Verify decides whether the connection is that of the
// peer; if not, Down follows with [ErrCertificate].
//
// A process that takes over a rank must have a larger incarnation than its
// predecessor, at any address: others are refused as stale.
func (t *Transport) SetPeer(rank protocol.Rank, address string) {
	if !t.isPeer(rank) {
		t.cfg.Logger.Warn("no such peer", "peer", rank, "address", address, "ranks", t.cfg.ranks())
		return
	}
	t.peer(rank).setAddress(address)
}

// setAddress changes the address of a peer.
func (p *peer) setAddress(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moveTo(address)
}

// moveTo changes the address of a peer. The caller holds mu.
func (p *peer) moveTo(address string) {
	if p.t.state.Load() == closing {
		return
	}
	if p.conn != nil && address != "" {
		if err := p.t.verify(p.rank, p.conn.certificates); err != nil {
			// It came before this member knew whose rank it is. Its incarnation is not
			// the peer's.
			p.detach(p.conn, err)
			p.incarnation, p.theirs = 0, 0
		}
	}
	if p.address == address {
		return
	}
	p.address = address
	switch {
	case p.conn != nil && p.conn.newcomer && address != "":
		p.conn.newcomer = false // This is its address from now on.
		p.t.newcomers.remove(p.conn.raw)
	case p.conn != nil:
		p.detach(p.conn, ErrMoved)
	case p.dial != nil:
		p.dial.cancel()
		p.t.wg.Go(p.endDial(ErrMoved)) // By another goroutine: the caller may be a handler.
	}
	p.backoff, p.retryAt = 0, time.Time{} // Failures at the old address do not count.
}
