package tcp

import (
	"net"
	"slices"
	"sync"
)

// connSet is a bounded set of connections that may be of any process, as those in
// their handshake. When it is full, the oldest is closed: a member sends its Hello at
// once, so processes that take their time cannot keep members out.
type connSet struct {
	mu      sync.Mutex
	pending []net.Conn // oldest first
}

// add adds a connection, and reports whether another one was closed for it.
func (h *connSet) add(c net.Conn, limit int) (evicted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.pending) >= limit {
		_ = h.pending[0].Close()
		h.pending = slices.Delete(h.pending, 0, 1)
		evicted = true
	}
	h.pending = append(h.pending, c)
	return evicted
}

// remove removes a connection, if it is in the set.
func (h *connSet) remove(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.pending, c); i >= 0 {
		h.pending = slices.Delete(h.pending, i, i+1)
	}
}
