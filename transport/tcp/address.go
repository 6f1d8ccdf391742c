package tcp

import (
	"time"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

var _ transport.AddressBook = (*Transport)(nil)

// SetPeer says where a rank is reached from now on: it is dialed there when
// something is next sent to it. With "" it is nobody's, and Send says
// [transport.ErrDown], unless somebody connects as this rank in an open group.
//
// If the address changes, a connection is ended, and Down told with [ErrMoved].
// But one that was opened by a newcomer stays: by a process newer than the one
// known before, or when none was known. It may have heard of its rank before we did,
// and to end its connection would make each take the other for dead.
//
// Who takes over a rank must have a larger incarnation than who had it before,
// wherever it lives: others are refused as stale.
func (t *Transport) SetPeer(rank protocol.Rank, address string) {
	if !t.isPeer(rank) {
		t.cfg.Logger.Warn("no such peer", "peer", rank, "address", address, "ranks", t.cfg.ranks())
		return
	}
	t.peer(rank).setAddress(address)
}

// setAddress changes a peer's address.
func (p *peer) setAddress(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.address == address || p.t.state.Load() == closing {
		return
	}
	p.address = address
	switch {
	case p.conn != nil && p.conn.newcomer && address != "":
		p.conn.newcomer = false // It lives here from now on.
	case p.conn != nil:
		p.detach(p.conn, ErrMoved)
	case p.dial != nil:
		p.dial.cancel()
		p.t.wg.Go(p.endDial(ErrMoved)) // Told by another goroutine: this one may be a handler.
	}
	p.backoff, p.retryAt = 0, time.Time{} // Failures at the old place do not count.
}
