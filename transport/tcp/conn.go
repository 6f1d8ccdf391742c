package tcp

// The reader and the writer of one connection.

import (
	"crypto/x509"
	"net"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/transport"
)

// maxWrite bounds the bytes of one write, so that Writable is called while a long
// queue drains.
const maxWrite = 256 << 10

// conn is a connection to a peer. One goroutine opens it, reads it and notifies the
// handler of it.
type conn struct {
	peer    *peer
	raw     net.Conn // The socket.
	stream  net.Conn // What frames are written to: the socket, or TLS over it.
	in      *wire.Reader
	rawConn *rawConn // nil: the writer goroutine writes everything.

	certificates []*x509.Certificate // The peer's, with TLS.

	active atomic.Bool // Used since the last sweep, see idle.go.

	// Set when it becomes the peer's connection.
	incarnation uint64
	out         *queue
	ticket      ticket
	notified    chan struct{} // Closed when the handler knows that the peer is up.
	address     string        // The peer's at that time, or the remote address.

	// The rest is guarded by the peer's mutex.

	newcomer bool  // SetPeer may not know the address of this peer yet.
	cause    error // Why it is no longer the peer's connection.
}

// serve reads a connection to its end, and notifies the handler of both.
func (c *conn) serve(incarnation uint64) {
	p := c.peer
	c.ticket.wait()
	defer c.ticket.done()
	p.t.causes.Forget(p.dialEvent())
	p.t.cfg.Logger.Debug("peer up", "peer", p.rank, "incarnation", incarnation)
	p.handle(func(h transport.Handler) { h.Up(p.rank, incarnation) })
	close(c.notified)

	err := c.read()
	if isGoodbye(err) {
		c.yield()
	}
	p.mu.Lock()
	p.detach(c, err)
	p.retired(c)
	cause, full := c.cause, c.out.full
	p.mu.Unlock()
	p.t.newcomers.remove(c.raw)
	c.close()

	p.t.cfg.Logger.Debug("peer down", "peer", p.rank, "cause", cause)
	p.notifyDown(c.address, cause, full)
}

// read passes frames to the handler until there is an error.
func (c *conn) read() error {
	p, count := c.peer, &c.peer.t.count
	batches, _ := p.t.handler.(transport.BatchHandler)
	buffers, _ := p.t.handler.(transport.BufferProvider)
	buffer := func(head []byte, size int) (body []byte) {
		if buffers != nil {
			p.handle(func(transport.Handler) { body = buffers.ReceiveBuffer(p.rank, head, size) })
		}
		return body
	}
	for {
		head, body, err := c.in.NextInto(buffer)
		if err != nil {
			return err
		}
		c.touch()
		p.handlerMu.Lock()
		if p.t.state.Load() == running {
			count.framesReceived.Add(1)
			count.bytesReceived.Add(uint64(len(head) + len(body)))
			switch {
			case body != nil:
				buffers.BufferFilled(p.rank, head, body)
			case batches != nil && c.in.Ready():
				batches.ReceiveMore(p.rank, head)
			default:
				p.t.handler.Receive(p.rank, head)
			}
		}
		p.handlerMu.Unlock()
	}
}

// startWriter starts a goroutine that writes the queue, if there is a connection,
// something to write, and no such goroutine yet. The caller holds mu.
func (p *peer) startWriter() {
	if p.conn != nil {
		p.conn.startWriter()
	}
}

func (c *conn) startWriter() {
	if !c.out.writing && len(c.out.bytes) > 0 {
		c.out.writing = true
		c.peer.t.wg.Go(c.write)
	}
}

// touch notes that the connection is used.
func (c *conn) touch() {
	if !c.active.Load() {
		c.active.Store(true)
	}
}

// write writes until the queue is empty.
func (c *conn) write() {
	p, q := c.peer, c.out
	p.mu.Lock()
	defer p.mu.Unlock()
	for (p.conn == c || p.retiring == c) && len(q.bytes) > 0 {
		b := q.take()
		p.mu.Unlock()
		err := c.writeAll(b)
		q.buffers.put(b)
		p.mu.Lock()
		if err != nil {
			p.detach(c, err)
			c.close()
		}
	}
	q.writing = false
}

func (c *conn) writeAll(b []byte) error {
	p := c.peer
	for len(b) > 0 {
		n, err := c.stream.Write(b[:min(len(b), maxWrite)])
		if err != nil {
			return err
		}
		b = b[n:]
		p.mu.Lock()
		if c.out.wrote(n, p.t.cfg.QueueBytes) {
			// By another goroutine: the writer must not wait for a handler.
			p.t.wg.Go(func() {
				<-c.notified
				p.notifyWritable()
			})
		}
		p.mu.Unlock()
	}
	return nil
}

// close closes a connection immediately. It closes the socket, because closing TLS
// would wait for the peer.
func (c *conn) close() { _ = c.raw.Close() }

// closeWrite closes the outgoing direction.
func (c *conn) closeWrite() {
	if half, ok := c.raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
