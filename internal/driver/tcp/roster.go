package tcp

// In a group with views, the view says which process has a rank. A process that merely
// claims the rank, with whatever incarnation, must not cut off the member. So a
// connection counts only if it is the member's, and other processes learn why not.

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

var _ transport.Roster = (*Transport)(nil)

// earlyTimeout bounds how long a process waits for the view that has admitted it.
const earlyTimeout = 2 * time.Second

// roster is what the transport knows of the view. A peer that is made has its member
// itself. All others are looked up when they are needed, so that a view change costs a
// member what its peers are, and not the size of the group.
type roster struct {
	number  atomic.Uint64 // 0: there are no views.
	changed notify.Notifier

	mu    sync.Mutex
	view  transport.View
	early map[protocol.Rank]chan struct{} // The processes that wait for a view, one for each rank.
}

// SetView implements [transport.Roster]. The first view says which incarnation this
// process is. Calls must not be concurrent.
func (t *Transport) SetView(v transport.View) {
	if m, ok := memberOf(&v, t.cfg.Rank); ok && t.roster.number.Load() == 0 {
		t.incarnation = m.Incarnation
	}
	// First: a peer that is made from now on has its member of this view.
	t.roster.mu.Lock()
	t.roster.view = v
	t.roster.mu.Unlock()
	for p := range t.peers.all() {
		if m, ok := memberOf(&v, p.rank); ok {
			p.setMember(&m)
		} else {
			p.setMember(nil)
		}
	}
	// Last: what is judged by this number must find the members that belong to it.
	t.roster.number.Store(v.Number)
	t.roster.changed.Notify()
	t.sweepFormerViews()
}

// version returns the protocol version of the group.
func (r *roster) version() uint16 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.view.Version, wire.Newest())
}

// memberOf returns the process that has a rank in a view.
func memberOf(v *transport.View, rank protocol.Rank) (transport.Member, bool) {
	if v.Member == nil {
		return transport.Member{}, false
	}
	return v.Member(rank)
}

// makePeer makes the state of a rank.
func (t *Transport) makePeer(rank protocol.Rank) *peer {
	t.roster.mu.Lock()
	defer t.roster.mu.Unlock()
	p := &peer{t: t, rank: rank, out: t.newQueue()}
	if rank < protocol.Rank(len(t.cfg.Addresses)) {
		p.address = t.cfg.Addresses[rank]
	}
	if m, ok := memberOf(&t.roster.view, rank); ok {
		p.member, p.address = &m, m.Address
	}
	return t.peers.add(p)
}

// setMember sets the process that has this rank in the view, or none. A former member
// keeps its address and connection, so that it learns what it has missed, until another
// process has the rank.
func (p *peer) setMember(m *transport.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.member
	p.member = m
	if m == nil {
		return
	}
	if before != nil && before.Incarnation == m.Incarnation {
		if m.Nonce == 0 {
			m.Nonce = before.Nonce
		}
	} else {
		p.incarnation, p.theirs = 0, 0
		p.backoff, p.retryAt = 0, time.Time{}
		if p.conn != nil && p.conn.incarnation != m.Incarnation {
			p.detach(p.conn, ErrMoved)
		}
	}
	p.moveTo(m.Address)
}

// isMember reports whether the sender of a Hello is a member.
func isMember(m *transport.Member, theirs *wire.Hello) bool {
	return m.Incarnation == theirs.Incarnation && (m.Nonce == 0 || m.Nonce == theirs.Process)
}

// judge decides whether the sender of a Hello is the member of its rank, or nil if the
// view has none. A process once removed never returns with its incarnation. So if this
// member has the view that admitted the sender, it knows whether the sender is still a
// member.
func (r *roster) judge(m *transport.Member, theirs *wire.Hello) wire.Status {
	switch number := r.number.Load(); {
	case number == 0 || m != nil && isMember(m, theirs):
		return wire.Accepted
	case theirs.Incarnation > number:
		return wire.Early
	case m != nil && m.Incarnation == theirs.Incarnation:
		return wire.Taken
	}
	return wire.Removed
}

// member returns the process that has a rank in the view, or nil. It makes no peer.
func (t *Transport) member(rank protocol.Rank) *transport.Member {
	p := t.peers.get(rank)
	if p == nil {
		return t.roster.member(rank)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.member == nil {
		return nil
	}
	m := *p.member
	return &m
}

// member returns the process that has a rank in the view, or nil.
func (r *roster) member(rank protocol.Rank) *transport.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := memberOf(&r.view, rank); ok {
		return &m
	}
	return nil
}

// awaitView judges the sender of a Hello, and waits for the view that has admitted it
// if that is not known yet. It makes no peer for a rank that no process has. Of several
// that wait for one rank, the newest stays.
func (t *Transport) awaitView(theirs *wire.Hello) wire.Status {
	status := t.roster.judge(t.member(theirs.From), theirs)
	if status != wire.Early {
		return status
	}
	newer := t.roster.enter(theirs.From)
	defer t.roster.leave(theirs.From, newer)
	timeout := time.NewTimer(earlyTimeout)
	defer timeout.Stop()
	for {
		changed := t.roster.changed.Wait()
		status = t.roster.judge(t.member(theirs.From), theirs)
		if status != wire.Early {
			return status
		}
		select {
		case <-changed:
		case <-newer:
			return wire.Early
		case <-timeout.C:
			return wire.Early
		case <-t.ctx.Done():
			return wire.Early
		}
	}
}

// enter makes a process the one that waits for a rank. The channel is closed when
// another one does.
func (r *roster) enter(rank protocol.Rank) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before := r.early[rank]; before != nil {
		close(before)
	}
	if r.early == nil {
		r.early = make(map[protocol.Rank]chan struct{})
	}
	newer := make(chan struct{})
	r.early[rank] = newer
	return newer
}

func (r *roster) leave(rank protocol.Rank, newer chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.early[rank] == newer {
		delete(r.early, rank)
	}
}

// refuse tells a process why it is not the member of a rank, and returns that.
func (t *Transport) refuse(s *handshakeConn, status wire.Status) error {
	rank := s.dialed.From
	h := s.dialed.Answer(status)
	cause := error(refused(status))
	if status == wire.Removed {
		h.Removal.View = t.roster.number.Load()
		if m := t.member(rank); m != nil {
			h.Removal.ID, h.Removal.Address, h.Removal.Incarnation = m.ID, m.Address, m.Incarnation
		}
		cause = &notMemberError{s.dialed.Incarnation, &h.Removal}
	}
	_, _ = s.stream.Write(s.answerHello(h))
	if status == wire.Taken {
		t.peer(rank).look()
	}
	return &PeerError{Peer: rank, Address: s.RemoteAddr().String(), Err: cause}
}

// dialable reports whether a peer may be dialed: in a group with views, only members
// are. The caller holds mu.
func (p *peer) dialable() bool {
	return p.address != "" && (p.member != nil || p.t.roster.number.Load() == 0)
}

// look dials a peer that another process claims to be, unless it is connected: if it is
// gone, the other process may listen at its address.
func (p *peer) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil && p.dial == nil && p.dialable() && p.t.state.Load() == running && time.Now().After(p.retryAt) {
		p.startDial()
	}
}

// removedError returns what a Removal says to this process.
func removedError(r *wire.Removal) error {
	e := &transport.RemovedError{View: r.View}
	if r.ID != "" {
		e.Holder = &transport.Member{ID: r.ID, Address: r.Address, Incarnation: r.Incarnation}
	}
	return e
}

// notMemberError means that a process that is no longer a member tries to connect.
type notMemberError struct {
	theirs  uint64
	removal *wire.Removal
}

func (e *notMemberError) Error() string {
	if e.removal.ID == "" {
		return fmt.Sprintf("incarnation %d of this rank is not in view %d", e.theirs, e.removal.View)
	}
	return fmt.Sprintf("incarnation %d of this rank is over: %q at %s has it, since view %d", e.theirs, e.removal.ID,
		e.removal.Address, e.removal.Incarnation)
}

// Unwrap returns the status that the process receives.
func (e *notMemberError) Unwrap() error { return refused(wire.Removed) }
