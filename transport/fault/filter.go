package fault

import (
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// filter is the handler of the inner transport: it passes on to the real handler the
// calls that the faults allow. While a rank is frozen, calls wait in it. So the
// queues of the inner transport fill as they do behind a stopped process, and the
// filter needs none of its own.
type filter member

var _ transport.Handler = (*filter)(nil)

// side is one end of a connection.
type side struct {
	up          bool // by the last event of the inner transport
	incarnation uint64
	busy        bool    // a call of the handler about this peer is in progress
	outage      *outage // a reset in progress; see reset.go
}

// Receive implements [transport.Handler].
func (f *filter) Receive(from protocol.Rank, frame []byte) {
	m := (*member)(f)
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	s := m.side(from)
	if !m.awaitPassage(s) {
		m.net.stats.Discarded++
		return
	}
	m.call(s, func() { m.handler.Receive(from, frame) })
}

// Writable implements [transport.Handler]. It is dropped during a reset: the Up that
// follows implies it.
func (f *filter) Writable(peer protocol.Rank) {
	m := (*member)(f)
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if s := m.side(peer); m.awaitPassage(s) {
		m.call(s, func() { m.handler.Writable(peer) })
	}
}

// Up implements [transport.Handler]. During a reset it is only recorded: the reset calls
// Up at its end.
func (f *filter) Up(peer protocol.Rank, incarnation uint64) {
	m := (*member)(f)
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	s := m.side(peer)
	pass := m.awaitPassage(s)
	s.up, s.incarnation = true, incarnation
	if pass {
		m.call(s, func() { m.handler.Up(peer, incarnation) })
	}
}

// Down implements [transport.Handler]. During a reset it is only noted: the reset has
// called Down already.
func (f *filter) Down(peer protocol.Rank, cause error) {
	m := (*member)(f)
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	s := m.side(peer)
	pass := m.awaitPassage(s)
	s.up = false
	if pass {
		m.call(s, func() { m.handler.Down(peer, cause) })
	}
}

// awaitPassage waits until a call about a peer may be made, and reports whether to
// make it. It is dropped if the member has ended or the connection is being broken.
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
	defer func() { // Even when f panics, which a second panic here would hide.
		m.net.mu.Lock()
		s.busy = false
		m.changed.Broadcast()
	}()
	f()
}
