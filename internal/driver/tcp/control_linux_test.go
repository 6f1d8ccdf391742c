package tcp

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// A control message about shared memory that does not belong there ends the connection, and
// the next one is as good.
func TestControlMessagesOutOfPlace(t *testing.T) {
	location := make([]byte, locationSize)
	for name, message := range map[string][]byte{
		"an offer to a member that takes none": append(wire.AppendUint32(nil, offerMemory), location...),
		"a change to no memory":                wire.AppendUint32(nil, useMemory),
		"no to no offer":                       wire.AppendUint32(nil, declineMemory),
	} {
		t.Run(name, func(t *testing.T) {
			m := startGroup(t, 2, Config{SharedBytes: testShared, shareInside: true})
			connect(t, m[1], m[0])
			p := m[1].peer(0)
			p.mu.Lock()
			p.conn.out.addControl(message)
			p.conn.startWriter()
			p.mu.Unlock()
			eventually(t, "down", func() bool { return errors.Is(m[0].lastCause(1), errControl) })
			eventually(t, "a new connection", func() bool { return m[0].Send(1, []byte("again")) == nil })
		})
	}
}

// A goroutine that waits for space in a ring goes on when the peer has taken something, and
// ends when the connection is closed, or the peer takes nothing for too long or has damaged
// the ring.
func TestWriterWaitsForSpace(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		peer    func(s *shared) // what happens meanwhile
		want    error
	}{
		"closed":  {time.Minute, (*shared).close, net.ErrClosed},
		"silent":  {time.Millisecond, func(*shared) {}, errTaken},
		"damaged": {time.Minute, func(s *shared) { s.out.consumed.Store(1 << 40) }, errRing},
		"taken":   {time.Minute, func(s *shared) { s.out.consumed.Store(minRing) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, _, err := newMemory(minRing)
			if err != nil {
				t.Fatal(err)
			}
			defer m.release()
			tr := &Transport{cfg: Config{UserTimeout: c.timeout}}
			s := newShared(m, true, &conn{peer: &peer{t: tr}}, func(*memory) {})
			ended := make(chan error, 1)
			go func() {
				n, err := s.Write(make([]byte, 2*minRing))
				if full := n == 2*minRing; full != (err == nil) {
					t.Errorf("%d bytes are written, %v", n, err)
				}
				ended <- err
			}()
			eventually(t, "the ring is full", func() bool { return s.out.produced.Load() == minRing })
			c.peer(s)
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("ended with %v, not %v", err, c.want)
			}
		})
	}
}

// A frame may be cut anywhere where a ring is full: what does not fit waits, and nothing is
// lost or repeated.
func TestFrameIsCutAnywhere(t *testing.T) {
	tr := &Transport{}
	f := &frame{head: []byte("head"), body: []byte("body of it")}
	header := wire.Header(f.size())
	for _, before := range []string{"", "waits"} {
		whole := slices.Concat([]byte(before), header[:], f.head, f.body)
		for cut := range len(whole) + 2 {
			m, _, err := newMemory(minRing)
			if err != nil {
				t.Fatal(err)
			}
			p := &peer{t: tr, out: tr.newQueue()}
			p.conn = &conn{peer: p, out: p.out}
			p.conn.ring = newShared(m, true, p.conn, func(*memory) {})
			p.out.bytes, p.out.writing = []byte(before), true // no goroutine writes the rest
			_, _ = p.conn.ring.out.put(make([]byte, minRing-cut))
			if err := p.writeNow(f); err != nil {
				t.Fatal(err)
			}
			in := newShared(m, false, p.conn, func(*memory) {}).in
			got := make([]byte, minRing)
			n, err := in.get(got)
			got = append(got[minRing-cut:n], p.out.bytes...)
			if err != nil || !bytes.Equal(got, whole) {
				t.Errorf("room for %d of %d bytes: %q, not %q, %v", cut, len(whole), got, whole, err)
			}
			m.release()
		}
	}
}

// The system itself gives up a peer whose host acknowledges nothing for UserTimeout, on both sides.
func TestSystemKnowsTheUserTimeout(t *testing.T) {
	m := startGroup(t, 2, Config{UserTimeout: 1234 * time.Millisecond})
	connect(t, m[0], m[1])
	for i := range m {
		p := m[i].peer(protocol.Rank(1 - i))
		p.mu.Lock()
		raw, err := p.conn.raw.(*net.TCPConn).SyscallConn()
		p.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		var got int
		if failed := raw.Control(func(fd uintptr) {
			got, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP,
				tcpUserTimeout)
		}); failed != nil || err != nil || got != 1234 {
			t.Errorf("rank %d: %d ms, %v, %v", i, got, failed, err)
		}
	}
}
