package tcp

import (
	"sync"

	"github.com/pleach-go/pleach/transport"
)

// cork holds small frames back, so that those for one peer go out in one write: at
// a high rate, one system call per frame would cost more than all else. It applies
// to the whole transport, whichever goroutine sends.
type cork struct {
	mu    sync.Mutex
	depth int     // Corks minus Uncorks.
	peers []*peer // Those for which frames wait.
	spare []*peer // The list of the last Uncork, kept for its memory.
}

var _ transport.Corker = (*Transport)(nil)

const (
	// corkFrame is the longest frame that waits; copying a longer one would cost
	// more than a system call.
	corkFrame = 4 << 10
	// corkBytes bounds the bytes that wait; beyond it they are written.
	corkBytes = 32 << 10
)

// Cork implements [transport.Corker]: small frames wait for Uncork.
func (t *Transport) Cork() {
	t.cork.mu.Lock()
	t.cork.depth++
	t.cork.mu.Unlock()
}

// Uncork implements [transport.Corker]: it writes the frames that have waited.
func (t *Transport) Uncork() {
	c := &t.cork
	c.mu.Lock()
	c.depth--
	peers := c.peers
	c.peers, c.spare = c.spare[:0], nil
	c.mu.Unlock()
	for _, p := range peers {
		p.uncork()
	}
	clear(peers)
	c.mu.Lock()
	if c.spare == nil {
		c.spare = peers[:0]
	}
	c.mu.Unlock()
}

// add notes that frames wait for a peer, whose mutex is held. It returns false if
// the transport is not corked.
func (c *cork) add(p *peer) bool {
	if p.corked {
		return true // an Uncork to come will see to it
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.depth == 0 {
		return false
	}
	p.corked = true
	c.peers = append(c.peers, p)
	return true
}

// uncork writes the frames that have waited for this peer.
func (p *peer) uncork() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.corked = false
	switch {
	case p.conn == nil || p.out.writing || len(p.out.bytes) == 0:
	case !p.conn.direct():
		p.startWriter()
	default:
		_ = p.writeNow(nil) // A frame that Send took may still be lost.
	}
}
