package tcp

// The reader and the writer of one connection.

import (
	"crypto/x509"
	"net"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/transport"
)

// maxWrite bounds the bytes of one write, so that Writable is called while a long
// queue drains.
const maxWrite = 256 << 10

// longWaiting bounds the bytes that wait for space in shared memory when a long frame is
// added to them.
const longWaiting = 128 << 10

// conn is a connection to a peer. One goroutine opens it, reads it and notifies the
// handler of it.
type conn struct {
	peer    *peer
	raw     net.Conn // The socket.
	stream  net.Conn // What frames are written to: the socket, or TLS over it.
	in      *wire.Reader
	rawConn *rawConn // nil: the writer goroutine writes everything.
	polls   pollLock // Held by the goroutine that reads.
	handler frameHandler
	turn    turn // Whether that goroutine is in a call of the program.

	certificates []*x509.Certificate // The peer's, with TLS.

	active atomic.Bool // Used since the last sweep, see idle.go.

	doorbell *doorbell              // Of shared memory. nil: there will be none.
	shared   atomic.Pointer[shared] // nil: everything goes over the socket.
	received pace

	// Set when it becomes the peer's connection.
	incarnation uint64
	out         *queue
	ticket      ticket
	notified    chan struct{} // Closed when the handler knows that the peer is up.
	address     string        // The peer's at that time, or the remote address.

	// The rest is guarded by the peer's mutex.

	sharing  sharing
	ring     *shared // What frames are written to instead of the stream. nil: not yet.
	newcomer bool    // SetPeer may not know the address of this peer yet.
	cause    error   // Why it is no longer the peer's connection.
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

	c.handler = c.newFrameHandler()
	if c.rawConn != nil {
		c.rawConn.share(&c.polls)
	}
	c.serveFrames()
}

// serveFrames reads the connection to its end, unless another goroutine does so meanwhile.
func (c *conn) serveFrames() {
	p := c.peer
	replaced, err := c.read()
	if replaced {
		return
	}
	if isGoodbye(err) {
		c.yield()
	}
	p.mu.Lock()
	p.detach(c, err)
	p.retired(c)
	c.unshare()
	cause, full := c.cause, c.out.full
	p.mu.Unlock()
	p.t.newcomers.remove(c.raw)
	c.close()

	p.t.cfg.Logger.Debug("peer down", "peer", p.rank, "cause", cause)
	p.notifyDown(c.address, cause, full)
}

// frameHandler is the transport's handler, as the reader of a connection uses it.
type frameHandler struct {
	batches transport.BatchHandler                    // nil: it is none.
	buffers transport.BufferProvider                  // nil: it is none.
	buffer  func(head []byte, size int) (body []byte) // Asks buffers.
}

func (c *conn) newFrameHandler() (f frameHandler) {
	p := c.peer
	f.batches, _ = p.t.handler.(transport.BatchHandler)
	f.buffers, _ = p.t.handler.(transport.BufferProvider)
	f.buffer = func(head []byte, size int) (body []byte) {
		if f.buffers != nil {
			p.handle(func(transport.Handler) { body = f.buffers.ReceiveBuffer(p.rank, head, size) })
		}
		return body
	}
	return f
}

// read passes frames to the handler until there is an error, or another goroutine reads on.
// While it waits for bytes, others may do so, see poll.go.
func (c *conn) read() (replaced bool, err error) {
	for !replaced && err == nil {
		if err = c.readToProgram(); err == nil {
			replaced = c.dispatch()
		}
	}
	return replaced, err
}

// readToProgram passes frames to the handler until the program has something to do.
func (c *conn) readToProgram() error {
	l := &c.polls
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = c.rawConn != nil
	for {
		err := c.passBatch()
		switch {
		case l.err != nil:
			l.open = false
			return l.err
		case err != nil && err != errWoken:
			l.open = false
			return err
		case c.peer.t.programs.pending():
			return nil
		}
	}
}

// passBatch passes the frames that have arrived together to the handler, at least one.
func (c *conn) passBatch() error {
	for {
		head, body, err := c.in.NextInto(c.handler.buffer)
		if err != nil {
			if err = c.control(err); err != nil {
				return err
			}
			continue
		}
		c.touch()
		if c.received.busy(len(head) + len(body)) {
			c.peer.mu.Lock()
			c.share()
			c.peer.mu.Unlock()
		}
		more := c.in.Ready()
		c.pass(head, body, more)
		if !more {
			return nil
		}
	}
}

// pass passes a frame to the handler. More says that the next one follows at once.
func (c *conn) pass(head, body []byte, more bool) {
	p, count := c.peer, &c.peer.t.count
	p.handlerMu.Lock()
	defer p.handlerMu.Unlock()
	if p.t.state.Load() != running {
		return
	}
	count.framesReceived.Add(1)
	count.bytesReceived.Add(uint64(len(head) + len(body)))
	switch h := &c.handler; {
	case body != nil:
		h.buffers.BufferFilled(p.rank, head, body)
	case h.batches != nil && more:
		h.batches.ReceiveMore(p.rank, head)
	default:
		p.t.handler.Receive(p.rank, head)
	}
}

// direct reports whether some bytes can be written without waiting. The caller holds mu.
func (c *conn) direct() bool {
	return c.ring != nil || c.rawConn != nil && c.sharing.left == 0
}

// queueLimit bounds the bytes that wait when a frame of a size is added to them. A long
// frame that does not fit into the ring is better sent again later: the caller still has
// it, and queuing it would copy it once more. The caller holds mu.
func (p *peer) queueLimit(size int) int {
	if p.conn != nil && p.conn.ring != nil && size >= wire.LongFrame {
		return min(longWaiting, p.t.cfg.QueueBytes)
	}
	return p.t.cfg.QueueBytes
}

// writeDirect writes as much as the socket or the ring takes of the waiting bytes and of
// a frame, if there is one. The caller holds mu, and no writer goroutine runs.
func (c *conn) writeDirect(waiting []byte, f *frame) (int, error) {
	if c.ring != nil {
		return c.ring.write(waiting, f)
	}
	return c.rawConn.write(waiting, f)
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
		err := c.writeAll(b)
		q.buffers.put(b)
		if err != nil {
			p.detach(c, err)
			c.close()
		}
	}
	q.writing = false
}

// writeAll writes bytes that were taken from the queue. The caller holds mu, which is
// free meanwhile.
func (c *conn) writeAll(b []byte) error {
	p := c.peer
	for len(b) > 0 {
		n, err := c.writeSome(b)
		if err != nil {
			return err
		}
		b = b[n:]
		if c.out.wrote(n) {
			// By another goroutine: the writer must not wait for a handler.
			p.t.wg.Go(func() {
				<-c.notified
				p.notifyWritable()
			})
		}
	}
	return nil
}

// close closes a connection immediately. It closes the socket, because closing TLS
// would wait for the peer.
func (c *conn) close() {
	if s := c.shared.Load(); s != nil {
		s.close()
	}
	_ = c.raw.Close()
}

// closeWrite closes the outgoing direction.
func (c *conn) closeWrite() {
	if half, ok := c.raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
