package tcp

import (
	"sync"

	"github.com/pleach-go/pleach/transport"
)

// cork lets small frames wait, so that those for one peer go out in one write:
// at a high rate a system call for each would cost more than all else. It holds
// for the whole transport, whoever sends.
type cork struct {
	mu    sync.Mutex
	depth int     // Corks minus Uncorks.
	peers []*peer // Those with something that waits.
	spare []*peer // The list that Uncork went through last, for its memory.
}

var _ transport.Corker = (*Transport)(nil)

const (
	// corkFrame is the longest frame that waits; to copy a longer one would cost
	// more than a system call.
	corkFrame = 4 << 10
	// corkBytes is how much may wait before it is written all the same.
	corkBytes = 32 << 10
)

// Cork lets small frames wait for Uncork.
func (t *Transport) Cork() {
	t.cork.mu.Lock()
	t.cork.depth++
	t.cork.mu.Unlock()
}

// Uncork writes what has waited.
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

// add notes that something waits for a peer, whose mutex is held. It reports false
// if nothing is to wait now.
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

// uncork writes what has waited for this peer.
func (p *peer) uncork() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.corked = false
	switch {
	case p.conn == nil || p.out.writing || len(p.out.bytes) == 0:
	case p.conn.rawConn == nil:
		p.startWriter()
	default:
		_ = p.writeNow(nil) // Those who sent it were told that it may be lost.
	}
}
