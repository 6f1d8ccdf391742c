package fault

import (
	"sync"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// member is a wrapped transport. Its fields are guarded by the network's lock.
type member struct {
	net     *Network
	rank    protocol.Rank
	inner   transport.Transport
	handler transport.Handler // set before the inner transport starts
	sides   map[protocol.Rank]*side
	ended   bool // closed or killed: no frame gets in or out
	killed  bool
	// changed wakes handler calls that wait; see filter.go.
	changed *sync.Cond
	running sync.WaitGroup // resets, and replies that wait for a thaw
}

func newMember(n *Network, rank protocol.Rank, inner transport.Transport) *member {
	return &member{
		net: n, rank: rank, inner: inner,
		sides:   make(map[protocol.Rank]*side),
		changed: sync.NewCond(&n.mu),
	}
}

// Start implements [transport.Transport].
func (m *member) Start(h transport.Handler) error {
	m.handler = h
	if requests, ok := h.(transport.RequestHandler); ok {
		return m.inner.Start(requestFilter{(*filter)(m), requests})
	}
	return m.inner.Start((*filter)(m))
}

// Send implements [transport.Transport].
func (m *member) Send(to protocol.Rank, frame []byte) error {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if m.ended {
		return &transport.SendError{To: to, Err: transport.ErrClosed}
	}
	if m.side(to).outage != nil {
		return &transport.SendError{To: to, Err: transport.ErrDown}
	}
	return m.net.link(direction{m.rank, to}).send(frame)
}

// Cork implements [transport.Corker], if the inner transport does.
func (m *member) Cork() {
	if c, ok := m.inner.(transport.Corker); ok {
		c.Cork()
	}
}

// Uncork implements [transport.Corker].
func (m *member) Uncork() {
	if c, ok := m.inner.(transport.Corker); ok {
		c.Uncork()
	}
}

// SetPeer implements [transport.AddressBook], if the inner transport does.
func (m *member) SetPeer(rank protocol.Rank, address string) {
	if d, ok := m.inner.(transport.AddressBook); ok {
		d.SetPeer(rank, address)
	}
}

// SetView implements [transport.Roster], if the inner transport does.
func (m *member) SetView(v transport.View) {
	if r, ok := m.inner.(transport.Roster); ok {
		r.SetView(v)
	}
}

// Close implements [transport.Transport]. Delayed frames go out at once; those of a
// frozen rank are lost.
func (m *member) Close() error {
	m.net.locked(func() {
		if !m.ended && !m.net.frozen[m.rank] {
			for _, l := range m.net.linksOf(m.rank, false) {
				l.drain()
			}
		}
		m.end()
	})
	err := m.inner.Close()
	m.running.Wait()
	return err
}

// end cuts the member off for good, with its frames in flight.
func (m *member) end() {
	if m.ended {
		return
	}
	m.ended = true
	delete(m.net.frozen, m.rank)
	for _, l := range m.net.linksOf(m.rank, true) {
		l.clear()
	}
	m.changed.Broadcast()
}

// side returns this member's end of its connection to a peer.
func (m *member) side(peer protocol.Rank) *side {
	s := m.sides[peer]
	if s == nil {
		s = new(side)
		m.sides[peer] = s
	}
	return s
}
