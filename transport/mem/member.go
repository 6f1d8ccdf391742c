package mem

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// member is the transport of one rank. A goroutine of its own passes the events of
// its inbox to its handler, so a handler that is slow or stuck delays no other
// member.
type member struct {
	net         *Network
	rank        protocol.Rank
	incarnation uint64
	running     sync.WaitGroup

	// mu guards the rest, and the queues of the links to this member. Of two members,
	// that of the lower rank is locked first. Handlers are called without it. It is not
	// one mutex for the whole network: hundreds of members on a busy host would queue
	// up at it, each for a slice of a processor.
	mu sync.Mutex

	handler transport.Handler
	ended   error      // why it runs no more
	arrived *sync.Cond // the inbox is not empty, or the member has ended
	inbox   []event
	links   map[protocol.Rank]*link
	// missed has the peers whose last event was Down, so that a hundred sends to a
	// dead peer cause one Down.
	missed map[protocol.Rank]bool
}

// link is one direction of a connection.
type link struct {
	from *member
	to   *member
	// Guarded by to's mutex.
	queued int  // bytes in to's inbox
	full   bool // a Send has returned ErrFull, and Writable has not followed
}

func newMember(n *Network, rank protocol.Rank, incarnation uint64) *member {
	m := &member{
		net: n, rank: rank, incarnation: incarnation,
		links:  make(map[protocol.Rank]*link),
		missed: make(map[protocol.Rank]bool),
	}
	m.arrived = sync.NewCond(&m.mu)
	return m
}

// Start implements [transport.Transport].
func (m *member) Start(h transport.Handler) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ended != nil:
		return fmt.Errorf("mem: start rank %d: %w", m.rank, transport.ErrClosed)
	case m.handler != nil:
		return fmt.Errorf("mem: start rank %d: already started", m.rank)
	}
	m.handler = h
	m.running.Go(m.run)
	return nil
}

// Send implements [transport.Transport].
func (m *member) Send(to protocol.Rank, frame []byte) error {
	if err := m.send(to, slices.Clone(frame)); err != nil {
		return &transport.SendError{To: to, Err: err}
	}
	return nil
}

func (m *member) send(to protocol.Rank, frame []byte) error {
	m.mu.Lock()
	l, running := m.links[to], m.runs()
	m.mu.Unlock()
	if !running {
		return transport.ErrClosed
	}
	if l == nil {
		var err error
		l, err = m.connect(to)
		if err != nil {
			return err
		}
	}
	peer := l.to
	peer.mu.Lock()
	defer peer.mu.Unlock()
	switch back := peer.links[m.rank]; {
	case back == nil || back.to != m: // one of the two has just ended
		return transport.ErrDown
	case l.queued > 0 && l.queued+cost(frame) > m.net.queueBytes:
		l.full = true
		return transport.ErrFull
	}
	l.queued += cost(frame)
	peer.post(event{kind: received, peer: m.rank, frame: frame, link: l})
	return nil
}

func (m *member) runs() bool { return m.ended == nil && m.handler != nil }

// connect returns the link to a peer. The first use causes Up on both sides. A member
// does not reach itself.
func (m *member) connect(to protocol.Rank) (*link, error) {
	m.net.mu.RLock()
	var peer *member
	if to >= 0 && to < protocol.Rank(len(m.net.members)) && to != m.rank {
		peer = m.net.members[to]
	}
	m.net.mu.RUnlock()
	if peer == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		return nil, m.miss(to, ErrNotStarted)
	}
	first, second := m, peer
	if to < m.rank {
		first, second = peer, m
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	switch {
	case !m.runs():
		return nil, transport.ErrClosed
	case peer.ended != nil:
		return nil, m.miss(to, peer.ended)
	case peer.handler == nil:
		return nil, m.miss(to, ErrNotStarted)
	case m.links[to] == nil:
		m.join(peer)
		peer.join(m)
	}
	return m.links[to], nil
}

// miss records that a peer is not reached.
func (m *member) miss(peer protocol.Rank, why error) error {
	if !m.missed[peer] {
		m.missed[peer] = true
		m.post(event{kind: down, peer: peer, cause: &PeerError{Peer: peer, Err: why}})
	}
	return transport.ErrDown
}

func (m *member) join(peer *member) {
	if m.links[peer.rank] != nil { // the process before it ends at this moment
		_ = m.miss(peer.rank, ErrKilled)
	}
	m.links[peer.rank] = &link{from: m, to: peer}
	delete(m.missed, peer.rank)
	m.post(event{kind: up, peer: peer.rank, incarnation: peer.incarnation})
}

// Close implements [transport.Transport]. Sent frames are in the inboxes of the
// others already, so it waits for the handler only.
func (m *member) Close() error {
	m.stop(transport.ErrClosed)
	m.running.Wait()
	return nil
}

// stop ends a member, and its peers get Down.
func (m *member) stop(why error) {
	m.mu.Lock()
	if m.ended != nil {
		m.mu.Unlock()
		return
	}
	m.ended = why
	m.inbox = nil
	links := m.links
	m.links = nil
	m.arrived.Signal()
	m.mu.Unlock()
	for _, l := range links {
		l.to.lose(m, why)
	}
}

// lose ends the link to a peer that has ended.
func (m *member) lose(peer *member, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.links[peer.rank]; l != nil && l.to == peer {
		delete(m.links, peer.rank)
		_ = m.miss(peer.rank, why)
	}
}
