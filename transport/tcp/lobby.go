package tcp

import (
	"net"
	"slices"
	"sync"
)

// lobby is where those who have connected stay until it is known who they are. It
// has limited room. When it is full the one that has been there longest has to go:
// a member says who it is at once, so that strangers who take their time cannot
// keep members out.
type lobby struct {
	mu      sync.Mutex
	waiting []net.Conn // oldest first
}

// enter lets a connection in, and reports whether another one was closed for it.
func (l *lobby) enter(c net.Conn, limit int) (closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= limit {
		_ = l.waiting[0].Close()
		l.waiting = slices.Delete(l.waiting, 0, 1)
		closed = true
	}
	l.waiting = append(l.waiting, c)
	return closed
}

// leave lets go of a connection, if it has not been closed to make room.
func (l *lobby) leave(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, c); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
}

func (l *lobby) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}
