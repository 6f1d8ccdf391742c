package tcp

// Two members of one host talk through memory that they share: a ring for each
// direction. The connection between them stays. It is how they have met and proved who
// they are; it wakes a side that sleeps, by a byte; and its end says that the other
// process is gone. What a process has published before its end is still read, as it
// would be from the buffer of a socket.

import (
	"cmp"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
)

const (
	// A ring has from minRing to maxRing bytes, powers of two.
	minRing, maxRing = 64 << 10, 4 << 20
	// sharedHead is the size of what precedes the bytes of the rings: a nonce, and the
	// positions and flags of both.
	sharedHead = 4 << 10
	ringsAt    = 512
)

// shared is the memory under a connection. Its user count keeps it mapped: the
// goroutine that reads the connection is a user, and so is every goroutine that writes.
// Those that write under the peer's mutex count as the reader, which ends after the
// connection has been detached under that mutex.
type shared struct {
	memory *memory
	users  atomic.Int32
	unmap  func(*memory)

	in       consumer
	doorbell *doorbell
	lock     *pollLock // Of the reader and its pollers. Held during Read.
	ended    error     // Why the connection has ended. The rest of the ring is still read.

	out     producer
	timeout time.Duration // How long out may be full.
	// waitsFor is the peer's position for which the writer waits. 0: it does not wait.
	waitsFor atomic.Uint64
	space    chan struct{} // Has an element when out may have space again, or closed.
	closed   atomic.Bool
	// switched is whether this side has told the peer that it uses the ring. Before that
	// the peer takes what comes by the socket for frames, and not for the doorbell.
	switched atomic.Bool
}

// newShared returns the rings in memory; first tells the side that has made it.
func newShared(m *memory, first bool, c *conn, unmap func(*memory)) *shared {
	s := &shared{
		memory: m, unmap: unmap, doorbell: c.doorbell, lock: &c.polls, timeout: c.peer.t.cfg.UserTimeout,
		space: make(chan struct{}, 1),
	}
	s.users.Store(1)
	half := (len(m.bytes) - sharedHead) / 2
	one := makeRing(m.bytes[ringsAt:], m.bytes[sharedHead:][:half:half], s.ring)
	two := makeRing(m.bytes[ringsAt+ringHead:], m.bytes[sharedHead+half:], s.ring)
	if !first {
		one, two = two, one
	}
	s.out.ring, s.in.ring = one, two
	return s
}

// hold adds a user. The caller knows that there is one.
func (s *shared) hold() { s.users.Add(1) }

// drop removes a user, and unmaps the memory after the last one.
func (s *shared) drop() {
	if s.users.Add(-1) == 0 {
		s.unmap(s.memory)
	}
}

// ring wakes the peer.
func (s *shared) ring() {
	if s.switched.Load() {
		s.doorbell.ring()
	}
}

// Read takes the bytes that are there. If there are none, it keeps the protocol of
// pollLock.
func (s *shared) Read(b []byte) (int, error) {
	if s.closed.Load() {
		return 0, net.ErrClosed
	}
	// A reader that has much to read does not hear the doorbell that is for the writer.
	if at := s.waitsFor.Load(); at != 0 && int64(s.out.consumed.Load()-at) >= 0 {
		s.signal()
	}
	n, err := s.in.get(b)
	s.lock.read += uint64(n)
	switch {
	case n > 0 || err != nil || len(b) == 0:
		return n, err
	case s.lock.polling:
		return 0, errEmpty
	case s.ended != nil:
		return 0, s.ended
	}
	return 0, s.sleep()
}

// sleep waits until the peer rings, or the connection ends.
func (s *shared) sleep() error {
	if !s.lock.awake {
		if rest, err := s.in.rest(); !rest {
			return cmp.Or(err, errWoken)
		}
	}
	s.lock.mu.Unlock()
	ended := s.doorbell.wait()
	s.signal() // The doorbell may have been for the writer.
	s.lock.mu.Lock()
	s.in.asleep.Store(0)
	s.ended = ended
	return errWoken
}

// signal wakes the goroutine that waits for space.
func (s *shared) signal() {
	select {
	case s.space <- struct{}{}:
	default:
	}
}

// close ends Read and Write. A Write that waits for space polls for it.
func (s *shared) close() {
	s.closed.Store(true)
}

// write takes as many of the waiting bytes, and then of a frame with its header, as fit.
func (s *shared) write(waiting []byte, f *frame) (n int, err error) {
	n, err = s.out.put(waiting)
	if f != nil && n == len(waiting) && err == nil {
		header := wire.Header(f.size())
		for _, b := range [...][]byte{header[:], f.head, f.body} {
			var k int
			k, err = s.out.put(b)
			n += k
			if k < len(b) || err != nil {
				break
			}
		}
	}
	s.out.publish()
	return n, err
}

// Write waits until there is space for all bytes.
func (s *shared) Write(b []byte) (n int, err error) {
	for n < len(b) {
		k, err := s.out.put(b[n:])
		s.out.publish()
		n += k
		if err == nil && n < len(b) {
			err = s.awaitSpace()
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// awaitSpace waits until there is space. The peer rings for it, but the goroutine that
// hears that may be busy with a frame, so awaitSpace also polls, at growing
// intervals. A peer that takes nothing for too long is lost, as one whose host acknowledges
// nothing is.
func (s *shared) awaitSpace() error {
	begun := time.Now()
	s.waitsFor.Store(s.out.position - s.out.size()/2)
	defer s.waitsFor.Store(0)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
		if rest, err := s.out.rest(); !rest {
			return err
		}
		select {
		case <-s.space:
		case <-time.After(pause):
		}
		switch {
		case s.closed.Load():
			return net.ErrClosed
		case time.Since(begun) > s.timeout:
			return errTaken
		}
	}
}

// errTaken means that a peer is alive and reads nothing.
var errTaken = errors.Join(errors.New("the peer takes nothing from the shared memory"), os.ErrDeadlineExceeded)
