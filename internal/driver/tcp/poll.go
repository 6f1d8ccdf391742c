package tcp

// A goroutine that waits for a frame may read the connection itself instead of waiting for
// the connection's own goroutine: on a host with a processor to spare, the frame is there
// before the two goroutines would have been woken.

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

var _ transport.Poller = (*Transport)(nil)

// pollLock serializes the goroutine that reads a connection with those that poll it. The
// reader holds mu except while it waits for bytes. A poller then continues where the reader
// has stopped, even in the middle of a frame, because a [wire.Reader] can.
//
// What frames are read from is therefore read with mu held. If it has no bytes, Read
// returns errEmpty to a poller. For the reader, it releases mu, waits and takes mu again. If
// a poller had a turn in between, it returns errWoken without reading: the reader has to
// start over.
type pollLock struct {
	mu      sync.Mutex
	polling bool   // The holder of mu is a poller.
	turns   uint64 // Of pollers so far.
	read    uint64 // Bytes that were read.
	open    bool   // There is a reader.
	err     error  // What a poller has found, for the reader.

	ring *shared // What is read, if it is shared memory.
	// awake is whether the peer need not ring when it writes to shared memory, because
	// pollers come often enough: polls counts them, and seen is that number when it was
	// last looked at.
	awake       bool
	polls, seen uint
}

var (
	errEmpty = errors.New("no bytes at present")
	errWoken = errors.New("the reader has waited")
)

// Poll implements [transport.Poller].
func (t *Transport) Poll(peer protocol.Rank) (received, ok bool) {
	p := t.peers.get(peer)
	if p == nil {
		return false, false
	}
	p.mu.Lock()
	c := p.conn
	p.mu.Unlock()
	if c == nil {
		return false, false
	}
	return c.poll()
}

func (c *conn) poll() (received, ok bool) {
	l := &c.polls
	if !l.mu.TryLock() {
		return false, c.rawConn != nil || c.shared.Load() != nil // Another goroutine is reading it.
	}
	defer l.mu.Unlock()
	if !l.open || l.err != nil {
		return false, false
	}
	before := l.read
	err := c.passPolled()
	if l.ring != nil {
		c.stayAwake()
	}
	return err == nil || l.read > before, c.polled(err)
}

// passPolled passes frames that have arrived together. The caller holds the lock.
func (c *conn) passPolled() error {
	l := &c.polls
	l.turns++
	l.polling = true
	err := c.passBatch()
	l.polling = false
	return err
}

// stayAwake says that the peer need not ring. The caller holds the lock, and has polled the
// ring, if only to find out that there is one. In that case the reader may still wait on
// the socket, and the system does not wake it for bytes that are gone: it wakes when the
// peer rings, which it does after the polls have ceased.
func (c *conn) stayAwake() {
	l := &c.polls
	l.polls++
	if !l.awake {
		l.awake = true
		l.ring.in.asleep.Store(0)
		c.peer.t.awake.add(c)
	}
}

// polled passes an error on to the reader. It reports whether there was none. The caller
// holds the lock.
func (c *conn) polled(err error) bool {
	if err == nil || err == errEmpty {
		return true
	}
	c.polls.err = err
	_ = c.raw.SetReadDeadline(time.Unix(1, 0)) // Wakes the reader.
	return false
}

// Rest implements [transport.Poller].
func (t *Transport) Rest() {
	if t.awake.any.Load() {
		t.awake.sleep(func(*pollLock) bool { return true })
	}
}

// lingerTime is how often the polls of shared memory are counted. Where there were none,
// the peer rings again.
const lingerTime = 200 * time.Microsecond

// awake has the connections whose peers need not ring. A poller that has found its message
// comes back soon, and the doorbell in between would take longer than the message. If it does
// not come back, what arrives must not wait for it.
type awake struct {
	any   atomic.Bool
	mu    sync.Mutex
	conns []*conn
	timer *time.Timer
}

// add adds a connection. The caller holds its pollLock.
func (a *awake) add(c *conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns = append(a.conns, c)
	a.any.Store(true)
	if a.timer == nil {
		a.timer = time.AfterFunc(lingerTime, a.check)
	} else if len(a.conns) == 1 {
		a.timer.Reset(lingerTime)
	}
}

// check puts those to sleep that were not polled since the last time. It runs again for the
// others, see add.
func (a *awake) check() {
	a.sleep(func(l *pollLock) bool {
		idle := l.polls == l.seen
		l.seen = l.polls
		return idle
	})
}

// sleep makes the readers of connections wait for the doorbell again, for those that may.
func (a *awake) sleep(may func(*pollLock) bool) {
	a.mu.Lock()
	conns := a.conns
	a.conns = nil
	a.any.Store(false)
	a.mu.Unlock()
	for _, c := range conns {
		if !c.sleep(may) {
			a.add(c)
		}
	}
}

// sleep makes the reader of a connection wait for the doorbell again, if it may. It returns
// false if it may not.
func (c *conn) sleep(may func(*pollLock) bool) bool {
	l := &c.polls
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open || l.err != nil {
		return true
	}
	if !may(l) {
		return false
	}
	l.awake = false
	var err error
	for err == nil || err == errEmpty {
		var rest bool
		rest, err = l.ring.in.rest()
		if rest || err != nil {
			break
		}
		err = c.passPolled()
	}
	c.polled(err)
	return true
}
