package tcp

import (
	"net"
	"slices"
	"sync"
)

// handshakes is where those who have connected stay until it is known who they are. It
// has limited room. When it is full the one that has been there longest has to go:
// a member says who it is at once, so that strangers who take their time cannot
// keep members out.
type handshakes struct {
	mu      sync.Mutex
	pending []net.Conn // oldest first
}

// add lets a connection in, and reports whether another one was closed for it.
func (l *handshakes) add(c net.Conn, limit int) (evicted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) >= limit {
		_ = l.pending[0].Close()
		l.pending = slices.Delete(l.pending, 0, 1)
		evicted = true
	}
	l.pending = append(l.pending, c)
	return evicted
}

// remove lets go of a connection, if it has not been closed to make room.
func (l *handshakes) remove(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.pending, c); i >= 0 {
		l.pending = slices.Delete(l.pending, i, i+1)
	}
}

func (l *handshakes) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending)
}
