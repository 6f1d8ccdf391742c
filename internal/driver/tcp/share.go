package tcp

// How two members of one host come to share memory. Both have said in their Hellos that
// they can, and the addresses of the connection are those of one host. When the
// connection is busy, the member of the lower rank makes the memory and offers it. The
// other one opens it, which proves that both are on one host and run as one user, and
// answers. Each direction changes to its ring after a control message on the socket, behind
// the frames that were sent there, so that their order is kept. If anything is in the way,
// the socket is used on.
//
// Control messages begin with length fields that are longer than any frame, as goodbye is.
// They follow the handshake, so they come from a process that has proved who it is.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
)

const (
	offerMemory   = goodbye - 1 // A location follows.
	useMemory     = goodbye - 2 // What follows is in the ring.
	declineMemory = goodbye - 3
)

// location says where the peer finds memory.
type location struct {
	pid, fd, ringSize uint32
	nonce             [16]byte
}

const locationSize = 28

func (l *location) size() int { return sharedHead + 2*int(l.ringSize) }

func (l *location) append(b []byte) []byte {
	b = wire.AppendUint32(wire.AppendUint32(wire.AppendUint32(b, l.pid), l.fd), l.ringSize)
	return append(b, l.nonce[:]...)
}

func decodeLocation(b []byte) (l location) {
	l.pid, l.fd, l.ringSize = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	copy(l.nonce[:], b[12:])
	return l
}

// features is what this member can do beyond the protocol version.
func (c *Config) features() uint32 {
	if canShare && c.SharedBytes > 0 {
		return wire.SharedMemory
	}
	return 0
}

// sharing is how far a connection is on its way to shared memory. The peer's mutex
// guards it.
type sharing struct {
	mayOffer, mayAnswer bool    // At most one of the two, and once.
	offered             *memory // The peer has not answered yet.
	left                int     // Bytes to write to the socket before the ring is used.
	sent                pace
}

// allowSharing finds out whether a new connection may use shared memory. The caller
// holds mu.
func (c *conn) allowSharing(theirs *wire.Hello) {
	t := c.peer.t
	if t.cfg.features()&theirs.Features&wire.SharedMemory == 0 || !sameHost(c.raw) {
		return
	}
	c.doorbell = newDoorbell(c.raw)
	if c.doorbell != nil {
		c.sharing.mayOffer, c.sharing.mayAnswer = t.cfg.Rank < c.peer.rank, t.cfg.Rank > c.peer.rank
	}
}

// sameHost reports whether both ends of a connection have addresses of one host.
func sameHost(c net.Conn) bool {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	remote, isTCP := c.RemoteAddr().(*net.TCPAddr)
	return ok && isTCP && (local.IP.Equal(remote.IP) || local.IP.IsLoopback() && remote.IP.IsLoopback())
}

// pace tells busy connections from others: memory is for those.
type pace struct {
	weight int
	since  time.Time
}

// Frames weigh as much as one of frameWeight bytes, and their own bytes. A connection is
// busy if it carries busyWeight of them in busyPeriod, far more than heartbeats do.
const (
	frameWeight = 4 << 10
	busyWeight  = 64 * frameWeight
	busyPeriod  = time.Second
)

// busy notes a frame. It reports whether the connection is busy, once in a while.
func (p *pace) busy(size int) bool {
	p.weight += frameWeight + size
	if p.weight < busyWeight {
		return false
	}
	now := time.Now()
	busy := now.Sub(p.since) < busyPeriod
	p.weight, p.since = 0, now
	return busy
}

// share offers memory to the peer of a busy connection, if this side may. The caller
// holds mu.
func (c *conn) share() {
	if c.sharing.mayOffer && c.peer.conn == c {
		c.sharing.mayOffer = false
		c.peer.t.wg.Go(c.offer)
	}
}

func (c *conn) offer() {
	p, t := c.peer, c.peer.t
	size := t.ringSize()
	reserved := (&location{ringSize: uint32(size)}).size()
	if size == 0 || !t.reserve(reserved) {
		return
	}
	m, at, err := newMemory(size)
	if err != nil {
		t.mapped.Add(-int64(reserved))
		t.cfg.Logger.Debug("no shared memory", "peer", p.rank, "cause", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != c {
		t.releaseMemory(m)
		return
	}
	c.sharing.offered = m
	c.out.addControl(at.append(wire.AppendUint32(nil, offerMemory)))
	c.startWriter()
}

// ringSize returns how long the rings of the next connection are: shorter if there are
// many. It is 0 if the limit is reached.
func (t *Transport) ringSize() int {
	left := int64(t.cfg.SharedBytes) - t.mapped.Load()
	for size := maxRing; size >= minRing; size /= 2 {
		if int64(size) <= left/8 {
			return size
		}
	}
	return 0
}

// reserve counts memory that is about to be mapped. It returns false if that would be
// more than the limit.
func (t *Transport) reserve(size int) bool {
	if t.mapped.Add(int64(size)) <= int64(t.cfg.SharedBytes) {
		return true
	}
	t.mapped.Add(-int64(size))
	return false
}

func (t *Transport) releaseMemory(m *memory) {
	t.mapped.Add(-int64(len(m.bytes)))
	m.release()
}

// control handles a control message of the peer, which is read in place of a frame. It
// returns the error, if it is another one.
func (c *conn) control(err error) error {
	size, ok := err.(*wire.SizeError)
	if !ok {
		return err
	}
	switch size.Size {
	case offerMemory:
		b, err := c.in.Control(locationSize)
		if err != nil {
			return err
		}
		return c.answer(decodeLocation(b))
	case useMemory:
		if _, err := c.in.Control(0); err != nil {
			return err
		}
		return c.readMemory()
	case declineMemory:
		if _, err := c.in.Control(0); err != nil {
			return err
		}
		return c.declined()
	}
	return err
}

// errControl means that a control message does not belong there.
var errControl = errors.New("tcp: unexpected control message about shared memory")

// answer opens the memory that the peer offers, and begins to use it.
func (c *conn) answer(at location) error {
	p, t := c.peer, c.peer.t
	p.mu.Lock()
	may := c.sharing.mayAnswer
	c.sharing.mayAnswer = false
	p.mu.Unlock()
	if !may {
		return errControl
	}
	m, err := t.open(at)
	if err != nil {
		t.cfg.Logger.Debug("no shared memory", "peer", p.rank, "cause", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.conn != c && m != nil:
		t.releaseMemory(m)
	case p.conn != c:
	case m == nil:
		c.out.addControl(wire.AppendUint32(nil, declineMemory))
		c.startWriter()
	default:
		c.setShared(m, false)
	}
	return nil
}

// open opens the memory of a peer, within the limits.
func (t *Transport) open(at location) (*memory, error) {
	size := int(at.ringSize)
	switch {
	case size < minRing || size > maxRing || size&(size-1) != 0:
		return nil, fmt.Errorf("rings of %d bytes", size)
	case int(at.pid) == os.Getpid() && !t.cfg.shareInside:
		return nil, errors.New("the peer is in this process")
	case !t.reserve(at.size()):
		return nil, errors.New("the limit for shared memory is reached")
	}
	m, err := openMemory(at)
	if err != nil {
		t.mapped.Add(-int64(at.size()))
	}
	return m, err
}

// setShared puts memory under the connection. This side writes to it as soon as the
// announcement to the peer is sent. The caller holds mu.
func (c *conn) setShared(m *memory, first bool) {
	t := c.peer.t
	s := newShared(m, first, c, t.releaseMemory)
	c.shared.Store(s)
	t.count.shared.Add(1)
	if c.peer.conn != c {
		return // It is about to be closed, and nothing more is written.
	}
	c.out.addControl(wire.AppendUint32(nil, useMemory))
	c.sharing.left = c.out.waiting()
	c.startWriter()
}

// readMemory reads from the ring from now on: the peer writes there.
func (c *conn) readMemory() error {
	p := c.peer
	p.mu.Lock()
	if m := c.sharing.offered; m != nil {
		c.sharing.offered = nil
		m.closeFile()
		c.setShared(m, true)
	}
	p.mu.Unlock()
	s := c.shared.Load()
	if s == nil || c.polls.ring != nil {
		return errControl
	}
	// What follows on the socket are doorbells. The peer may have rung already, for a writer
	// that waits for space, before this side knew that it is one.
	c.in.Switch(s)
	s.signal()
	c.polls.ring, c.polls.open = s, true
	return nil
}

func (c *conn) declined() error {
	p := c.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	m := c.sharing.offered
	if m == nil {
		return errControl
	}
	c.sharing.offered = nil
	p.t.releaseMemory(m)
	return nil
}

// unshare lets go of the memory at the end of a connection, which is no longer the
// peer's. The caller holds mu.
func (c *conn) unshare() {
	if m := c.sharing.offered; m != nil {
		c.peer.t.releaseMemory(m)
	}
	if s := c.shared.Load(); s != nil {
		c.peer.t.count.shared.Add(-1)
		s.drop()
	}
}

// writeSome writes some bytes to the socket or to the ring. The caller holds mu, which
// is free meanwhile.
func (c *conn) writeSome(b []byte) (n int, err error) {
	p := c.peer
	if p.conn != c && p.retiring != c {
		return 0, net.ErrClosed
	}
	var to io.Writer = c.stream
	b = b[:min(len(b), maxWrite)]
	if s := c.ring; s != nil {
		to = s
		s.hold()
		defer s.drop()
	} else if c.sharing.left > 0 {
		b = b[:min(len(b), c.sharing.left)]
	}
	p.mu.Unlock()
	n, err = to.Write(b)
	p.mu.Lock()
	if c.sharing.left > 0 {
		c.sharing.left -= n
		if c.sharing.left == 0 {
			c.ring = c.shared.Load()
			c.ring.switched.Store(true)
		}
	}
	return n, err
}
