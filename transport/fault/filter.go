package fault

import (
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// filter is the member as the inner transport's handler: it lets through to the
// real handler what may pass. While a rank is frozen, calls wait in it. So the
// inner transport's queues fill as they do behind a stopped process, and the gate
// needs none of its own.
type filter member

var _ transport.Handler = (*filter)(nil)

// side is one end of a connection.
type side struct {
	up          bool // as the inner transport said last
	incarnation uint64
	busy        bool    // a call of the handler about this peer is under way
	outage      *outage // a reset under way; see reset.go
}

// Receive implements [transport.Handler].
func (g *filter) Receive(from protocol.Rank, frame []byte) {
	m := (*member)(g)
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	s := m.side(from)
	if !m.awaitPassage(s) {
		m.net.stats.Discarded++
		return
	}
	m.call(s, func() { m.handler.Receive(from, frame) })
}

// Writable implements [transport.Handler]. In mid-reset it need not be told: the Up
// that follows says as much.
func (g *filter) Writable(peer protocol.Rank) {
	m := (*member)(g)
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if s := m.side(peer); m.awaitPassage(s) {
		m.call(s, func() { m.handler.Writable(peer) })
	}
}

// Up implements [transport.Handler]. In mid-reset it is only noted: the reset
// will tell it.
func (g *filter) Up(peer protocol.Rank, incarnation uint64) {
	m := (*member)(g)
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	s := m.side(peer)
	pass := m.awaitPassage(s)
	s.up, s.incarnation = true, incarnation
	if pass {
		m.call(s, func() { m.handler.Up(peer, incarnation) })
	}
}

// Down implements [transport.Handler]. In mid-reset it is only noted: the reset
// has told it already.
func (g *filter) Down(peer protocol.Rank, cause error) {
	m := (*member)(g)
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	s := m.side(peer)
	pass := m.awaitPassage(s)
	s.up = false
	if pass {
		m.call(s, func() { m.handler.Down(peer, cause) })
	}
}

// awaitPassage waits for the turn of a call about a peer, and reports whether it is to
// be made. It is not if the member has ended, or its connection is being broken.
func (m *member) awaitPassage(s *side) bool {
	for {
		switch {
		case m.ended, s.outage != nil && s.outage.breaking > 0:
			return false
		case !m.net.frozen[m.rank] && !s.busy && s.outage == nil:
			return true
		}
		m.changed.Wait()
	}
}

// call calls the handler about a peer, without the lock.
func (m *member) call(s *side, f func()) {
	s.busy = true
	m.net.mu.Unlock()
	defer func() { // Also if it panics, which a second panic here would hide.
		m.net.mu.Lock()
		s.busy = false
		m.changed.Broadcast()
	}()
	f()
}
