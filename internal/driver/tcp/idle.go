package tcp

// A member of a large group may once have talked to many others. It closes connections
// that it does not need at present, and opens them again when it sends: those that were
// idle for long, those of former views, and at once if descriptors run out. The two sides
// agree on that, so that no frame is lost and neither takes the other for dead: the one
// that closes says goodbye and sends nothing more, the other writes what waits and closes
// the socket.
//
// Which connections are idle is found by the second-chance algorithm (Corbató 1968):
// every frame marks its connection, a sweep clears the marks, and the next sweep closes
// connections without one. Heartbeats keep those to ring neighbors.

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/transport"
)

const (
	// goodbye is the length field that ends a connection. It is longer than any frame.
	goodbye = math.MaxUint32
	// shortageInterval is the least time between two sweeps for descriptors. It is far
	// below the time after which a silent member is suspected, so that a ring neighbor
	// whose connection waits to be accepted gets its turn before that.
	shortageInterval = 200 * time.Millisecond
	// viewInterval is the least time between two sweeps for views.
	viewInterval = time.Second
	// maxRetired bounds the connections that a sweep closes, or a quarter of all does, if
	// that is more: a member that runs out of descriptors gets many at once.
	maxRetired = 8
	// keptConnections is the number of idle connections that stay open, so that small
	// groups never reconnect.
	keptConnections = 6
	// manyConnections is beyond how many a new view closes those that are idle. A member of
	// a thousand has about ten in two views.
	manyConnections = 10
	// retireTimeout bounds how long the two sides take.
	retireTimeout = 2 * time.Second
)

// isGoodbye reports whether a connection was read to its agreed end.
func isGoodbye(err error) bool {
	var size *wire.SizeError
	return errors.As(err, &size) && size.Size == goodbye
}

// sweepRegularly closes connections that were idle since it ran last, and runs again
// after IdleTimeout. Only groups with views send the heartbeats by which a death is
// noticed without a connection to every peer.
func (t *Transport) sweepRegularly() {
	if t.roster.number.Load() > 0 {
		t.retireIdle(keptConnections)
	}
	t.regular.after(t.cfg.IdleTimeout, t.sweepRegularly)
}

// sweepFormerViews closes connections that were idle since the last sweep, if there are
// many. A new view lays other trees over its members, so that each member connects to
// others, and a group that changes often would keep the connections of many trees.
func (t *Transport) sweepFormerViews() {
	if t.count.connections.Load() > manyConnections {
		t.sweep(manyConnections, viewInterval)
	}
}

// sweep closes connections that were idle since the last sweep, as long as more than so
// many are open, unless that was less than an interval ago.
func (t *Transport) sweep(kept int64, interval time.Duration) {
	t.local.mu.Lock()
	due := time.Since(t.local.swept) >= interval
	if due {
		t.local.swept = time.Now()
	}
	t.local.mu.Unlock()
	if !due {
		return
	}
	t.retireIdle(kept)
}

// retireIdle closes connections that are idle, as long as more than so many are open.
func (t *Transport) retireIdle(kept int64) {
	n, most := int64(0), max(maxRetired, t.count.connections.Load()/4)
	for p := range t.peers.all() {
		if n < most && p.retire(t.count.connections.Load() > kept) {
			n++
		}
	}
}

// retire clears the mark of the connection. If it had none and may be closed, retire
// begins to close it, and reports so.
func (p *peer) retire(may bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.conn
	if c == nil || c.active.Swap(false) || !may || p.corked || p.out.writing || p.out.waiting() > 0 {
		return false
	}
	p.setRetiring(c)
	p.t.wg.Go(func() {
		_ = c.raw.SetDeadline(time.Now().Add(retireTimeout))
		p.mu.Lock()
		_, err := c.writeSome(wire.AppendUint32(nil, goodbye))
		p.mu.Unlock()
		if err != nil {
			c.close() // its reader notices
		}
	})
	return true
}

// setRetiring makes frames wait for the next connection. The caller holds mu.
func (p *peer) setRetiring(c *conn) {
	p.conn, p.retiring, c.cause = nil, c, transport.ErrIdle
	p.out = p.t.newQueue()
	p.t.count.connections.Add(-1)
}

// yield is the answer to goodbye: it writes what waits.
func (c *conn) yield() {
	p := c.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == c {
		p.setRetiring(c)
	}
	for deadline := time.Now().Add(retireTimeout); p.retiring == c && c.out.waiting() > 0 && time.Now().Before(deadline); {
		c.startWriter()
		p.mu.Unlock()
		time.Sleep(time.Millisecond)
		p.mu.Lock()
	}
}

// retired ends an agreed close. Frames that have waited for it go over a new
// connection. The caller holds mu.
func (p *peer) retired(c *conn) {
	if p.retiring != c {
		return
	}
	p.retiring = nil
	if p.conn == nil && p.dial == nil && p.out.waiting() > 0 && p.t.state.Load() == running {
		p.startDial()
	}
}

// regular is the timer of regular sweeps. Unlike a goroutine, it costs a member nothing
// while it waits.
type regular struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// after calls a function after some time, unless the timer was stopped.
func (r *regular) after(d time.Duration, do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.timer = time.AfterFunc(d, do)
	}
}

func (r *regular) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	if r.timer != nil {
		r.timer.Stop()
	}
}
