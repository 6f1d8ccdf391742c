package limit

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"time"
)

// Listener bounds the connections of a listener. When it is full, or a source has its share, the
// oldest connection that has no whole request makes room: a client that takes its time cannot
// keep others out.
type Listener struct {
	net.Listener
	most, share int
	refusal     []byte
	refused     func()

	mu   sync.Mutex
	open map[string][]*Conn // by source, oldest first
	n    int
}

// refusalTimeout bounds the reply to a connection that is refused.
const refusalTimeout = 100 * time.Millisecond

// NewListener bounds the connections of l. One source has half of them at most. A connection that
// finds no room gets refusal, if there is one, and is closed; refused is called for each that is
// closed for want of room.
func NewListener(l net.Listener, most int, refusal []byte, refused func()) *Listener {
	return &Listener{
		Listener: l, most: most, share: max(1, most/2), refusal: refusal, refused: refused,
		open: make(map[string][]*Conn),
	}
}

// Conn is a connection of a client.
type Conn struct {
	net.Conn
	Peer     Peer
	source   string
	listener *Listener
	serving  int // requests under way; guarded by listener.mu
	gone     bool
}

// Accept returns the next connection that has room.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &Conn{Conn: raw, Peer: peerOf(raw), listener: l}
		c.source = c.Peer.String()
		evicted, ok := l.enter(c)
		if evicted != nil || !ok {
			l.refused()
		}
		if evicted != nil {
			_ = evicted.Close()
		}
		if ok {
			return c, nil
		}
		_ = raw.SetWriteDeadline(time.Now().Add(refusalTimeout))
		_, _ = raw.Write(l.refusal)
		_ = raw.Close()
	}
}

// Open returns the number of connections.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// enter adds a connection. If there is no room for it, evicted is the one that makes some.
func (l *Listener) enter(c *Conn) (evicted *Conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.open[c.source]) >= l.share:
		evicted = idle(l.open[c.source])
	case l.n >= l.most:
		evicted = idle(l.largest())
	default:
		l.add(c)
		return nil, true
	}
	if evicted == nil {
		return nil, false
	}
	l.remove(evicted)
	l.add(c)
	return evicted, true
}

// idle returns the oldest connection without a whole request.
func idle(all []*Conn) *Conn {
	if i := slices.IndexFunc(all, func(c *Conn) bool { return c.serving == 0 }); i >= 0 {
		return all[i]
	}
	return nil
}

// largest returns the connections of the source that has the most.
func (l *Listener) largest() (most []*Conn) {
	for _, all := range l.open {
		if len(all) > len(most) {
			most = all
		}
	}
	return most
}

func (l *Listener) add(c *Conn) {
	l.open[c.source] = append(l.open[c.source], c)
	l.n++
}

func (l *Listener) remove(c *Conn) {
	if c.gone {
		return
	}
	c.gone = true
	l.n--
	all := l.open[c.source]
	all = slices.Delete(all, slices.Index(all, c), slices.Index(all, c)+1)
	if len(all) == 0 {
		delete(l.open, c.source)
		return
	}
	l.open[c.source] = all
}

// Close closes the connection, and makes room for another one.
func (c *Conn) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// Serve says that a whole request is under way: the connection is not closed for others until done is
// called.
func (c *Conn) Serve() (done func()) {
	c.serve(1)
	return func() { c.serve(-1) }
}

func (c *Conn) serve(n int) {
	if c.listener == nil {
		return // it was not accepted: a test has made it
	}
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.serving += n
}

// connKey is the key of a connection in a context.
type connKey struct{}

// WithConn adds a connection of a [Listener] to the context of its requests. It is
// [net/http.Server.ConnContext].
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// ConnOf returns the connection of a request, or nil.
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
