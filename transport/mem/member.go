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

	// The rest is guarded by net.mu.

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
	from   *member
	to     *member
	queued int  // bytes in to's inbox
	full   bool // a Send has returned ErrFull, and Writable has not followed
}

func newMember(n *Network, rank protocol.Rank, incarnation uint64) *member {
	return &member{
		net: n, rank: rank, incarnation: incarnation,
		arrived: sync.NewCond(&n.mu),
		links:   make(map[protocol.Rank]*link),
		missed:  make(map[protocol.Rank]bool),
	}
}

// Start implements [transport.Transport].
func (m *member) Start(h transport.Handler) error {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
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
	frame = slices.Clone(frame) // Before the lock: the frame may be long.
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if err := m.send(to, frame); err != nil {
		return &transport.SendError{To: to, Err: err}
	}
	return nil
}

func (m *member) send(to protocol.Rank, frame []byte) error {
	if m.ended != nil || m.handler == nil {
		return transport.ErrClosed
	}
	l, err := m.connect(to)
	if err != nil {
		if !m.missed[to] {
			m.missed[to] = true
			m.post(event{kind: down, peer: to, cause: &PeerError{Peer: to, Err: err}})
		}
		return transport.ErrDown
	}
	if l.queued > 0 && l.queued+cost(frame) > m.net.queueBytes {
		l.full = true
		return transport.ErrFull
	}
	l.queued += cost(frame)
	l.to.post(event{kind: received, peer: m.rank, frame: frame, link: l})
	return nil
}

// connect returns the link to a peer. The first use causes Up on both sides.
func (m *member) connect(to protocol.Rank) (*link, error) {
	if l := m.links[to]; l != nil {
		return l, nil
	}
	peer, err := m.net.reach(m.rank, to)
	if err != nil {
		return nil, err
	}
	m.join(peer)
	peer.join(m)
	return m.links[to], nil
}

func (m *member) join(peer *member) {
	m.links[peer.rank] = &link{from: m, to: peer}
	delete(m.missed, peer.rank)
	m.post(event{kind: up, peer: peer.rank, incarnation: peer.incarnation})
}

// Close implements [transport.Transport]. Sent frames are in the inboxes of the
// others already, so it waits for the handler only.
func (m *member) Close() error {
	m.net.mu.Lock()
	m.stop(transport.ErrClosed)
	m.net.mu.Unlock()
	m.running.Wait()
	return nil
}

// stop ends a member, and its peers get Down.
func (m *member) stop(why error) {
	if m.ended != nil {
		return
	}
	m.ended = why
	m.inbox = nil
	m.arrived.Signal()
	for rank, l := range m.links {
		delete(l.to.links, m.rank)
		l.to.missed[m.rank] = true
		l.to.post(event{kind: down, peer: m.rank, cause: &PeerError{Peer: m.rank, Err: why}})
		delete(m.links, rank)
	}
}
