package tcp

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Only a connection that no frame has used between two sweeps is closed, and the next
// frame opens it again.
func TestIdleConnectionIsClosed(t *testing.T) {
	checkGoroutines(t)
	m := startGroup(t, 2, Config{})
	connect(t, m[0], m[1])
	if m[0].peer(1).retire(true) {
		t.Error("a connection that is used is closed")
	}
	mustSend(t, m[0], 1, []byte("again"))
	if m[0].peer(1).retire(true) {
		t.Error("a connection that was used since is closed")
	}
	eventually(t, "idle", func() bool { return m[0].peer(1).retire(true) })
	for i := range m {
		peer := protocol.Rank(1 - i)
		eventually(t, "down", func() bool { return errors.Is(m[i].lastCause(peer), transport.ErrIdle) })
	}
	connect(t, m[1], m[0])
	connect(t, m[0], m[1])
	if n := m[0].Stats().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Connections are closed all the time, by both sides, and no frame is lost, comes twice
// or out of order.
func TestIdleCloseLosesNothing(t *testing.T) {
	ca := testutil.NewCA(t)
	for name, cfg := range map[string]Config{"plain": {}, "secret": {Secret: secret}, "tls": {TLS: ca.Config(t, ca)}} {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			const frames = 400
			m := startGroup(t, 2, cfg)
			stop := make(chan struct{})
			var sweeping, sending sync.WaitGroup
			for i := range m {
				peer := m[i].peer(protocol.Rank(1 - i))
				sweeping.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(time.Millisecond):
							peer.retire(true)
						}
					}
				})
				sending.Go(func() {
					pause := time.Tick(4 * time.Millisecond)
					for n := range frames {
						if !testutil.Within(time.Minute,
							func() bool { return m[i].Send(protocol.Rank(1-i), fmt.Append(nil, n)) == nil }) {
							t.Error("cannot send")
							return
						}
						if n%5 == 0 {
							<-pause
						}
					}
				})
			}
			sending.Wait()
			for i := range m {
				from := protocol.Rank(1 - i)
				eventually(t, "all frames", func() bool { return len(m[i].received(from)) >= frames })
			}
			close(stop)
			sweeping.Wait()
			for i := range m {
				for n, f := range m[i].received(protocol.Rank(1 - i)) {
					if string(f) != fmt.Sprint(n) {
						t.Fatalf("rank %d received %s as number %d", i, f, n)
					}
				}
			}
			t.Logf("%d connections were opened", m[0].Stats().Dials+m[1].Stats().Dials)
		})
	}
}

// startConnected starts a group with views whose rank 0 is connected to all others.
func startConnected(t *testing.T, others int) (m []*member, n *places, all []process) {
	t.Helper()
	checkGoroutines(t)
	n = newPlaces(t, 1+others)
	for rank := range protocol.Rank(1 + others) {
		all = append(all, process{rank, 1, uint64(10 + rank)})
	}
	for i, p := range all {
		m = append(m, startProcess(t, p, i, n, 1, all...))
	}
	for _, other := range m[1:] {
		connect(t, m[0], other)
	}
	if c := m[0].Stats().Connections; c != others {
		t.Fatalf("%d connections", c)
	}
	return m, n, all
}

// With a new view, a member that has many connections closes those that it has not used
// since the last one, except for some. A connection that is used stays.
func TestViewClosesConnectionsOfFormerViews(t *testing.T) {
	const last = protocol.Rank(manyConnections + 3)
	m, n, all := startConnected(t, int(last))
	view := uint64(1)
	eventually(t, "idle connections are closed", func() bool {
		mustSend(t, m[0], last, []byte("used"))
		m[0].local.mu.Lock()
		m[0].local.swept = time.Time{} // long ago
		m[0].local.mu.Unlock()
		view++
		m[0].SetView(n.view(view, all...))
		return m[0].Stats().Connections <= manyConnections
	})
	if c := m[0].Stats().Connections; c != manyConnections {
		t.Errorf("%d connections, want %d", c, manyConnections)
	}
	if cause := m[0].lastCause(last); cause != nil {
		t.Errorf("a connection that is used is closed: %v", cause)
	}
}

// A member of a group with views closes idle connections beyond those that it keeps, and
// takes no peer for dead by that. A connection that is used stays.
func TestIdleConnectionsAreClosedRegularly(t *testing.T) {
	const last = protocol.Rank(keptConnections + 3)
	m, _, _ := startConnected(t, int(last))
	eventually(t, "idle connections are closed", func() bool {
		mustSend(t, m[0], last, []byte("used"))
		m[0].retireIdle(keptConnections)
		return m[0].Stats().Connections <= keptConnections
	})
	for rank := protocol.Rank(1); rank <= last; rank++ {
		if cause := m[0].lastCause(rank); cause != nil && !errors.Is(cause, transport.ErrIdle) {
			t.Errorf("peer %d is down: %v", rank, cause)
		}
	}
	if cause := m[0].lastCause(last); cause != nil {
		t.Errorf("a connection that is used is closed: %v", cause)
	}
	mustSend(t, m[0], last, []byte("used"))
	m[0].retireIdle(keptConnections)
	m[0].retireIdle(keptConnections)
	if c := m[0].Stats().Connections; c != keptConnections {
		t.Errorf("%d connections, want %d", c, keptConnections)
	}
}

// Without views there are no heartbeats, and only a connection tells of a death.
func TestRegularSweepNeedsViews(t *testing.T) {
	checkGoroutines(t)
	for number, sweeps := range map[uint64]bool{0: false, 1: true} {
		m := startGroup(t, 2, Config{IdleTimeout: time.Hour})
		connect(t, m[0], m[1])
		m[0].roster.number.Store(number)
		m[0].sweepRegularly()
		p := m[0].peer(1)
		p.mu.Lock()
		if marked := p.conn.active.Load(); marked == sweeps {
			t.Errorf("view %d: the sweep left the connection's mark: %v", number, marked)
		}
		p.mu.Unlock()
	}
}

// The sweep runs by itself, and again.
func TestRegularSweepRuns(t *testing.T) {
	checkGoroutines(t)
	m := startGroup(t, 2, Config{IdleTimeout: time.Millisecond})
	connect(t, m[0], m[1])
	p := m[0].peer(1)
	m[0].roster.number.Store(1)
	for range 2 {
		p.mu.Lock()
		p.conn.touch()
		p.mu.Unlock()
		eventually(t, "swept", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return !p.conn.active.Load()
		})
	}
}

// Two sweeps follow each other after an interval at the earliest, however many views come: otherwise
// a connection would have no time to be used between them.
func TestSweepsKeepTheirInterval(t *testing.T) {
	m := startGroup(t, 2, Config{})
	connect(t, m[0], m[1])
	for range 3 {
		m[0].sweep(0, time.Hour)
	}
	if n := m[0].Stats().Connections; n != 1 {
		t.Fatalf("%d connections after sweeps that were not due", n)
	}
	eventually(t, "closed", func() bool {
		m[0].sweep(0, 0)
		return m[0].Stats().Connections == 0
	})
}

// A frame that is sent during an agreed close goes over the next connection, also if none follows
// that would open it.
func TestFrameWaitsForAnAgreedClose(t *testing.T) {
	m := startGroup(t, 2, Config{})
	connect(t, m[0], m[1])
	p := m[0].peer(1)
	p.mu.Lock()
	c := p.conn
	p.setRetiring(c)
	p.mu.Unlock()
	mustSend(t, m[0], 1, []byte("waits"))
	c.close()
	eventually(t, "the frame", func() bool { return len(m[1].received(0)) == 2 })
}

// Frames that wait for Uncork leave before an agreed close.
func TestCorkedFramesLeaveBeforeAnAgreedClose(t *testing.T) {
	m := startGroup(t, 2, Config{})
	connect(t, m[0], m[1])
	m[0].Cork()
	defer m[0].Uncork()
	mustSend(t, m[0], 1, []byte("waits"))
	eventually(t, "the other side closes", func() bool { return m[1].peer(0).retire(true) })
	eventually(t, "the frame", func() bool { return len(m[1].received(0)) == 2 })
}

// The end of another connection, one that was replaced, does not end an agreed close.
func TestOnlyItsEndEndsAnAgreedClose(t *testing.T) {
	p := &peer{t: &Transport{}}
	p.out = p.t.newQueue()
	closing := &conn{peer: p}
	p.retiring = closing
	p.retired(&conn{peer: p})
	if p.retiring != closing {
		t.Error("another connection has ended the agreed close")
	}
	p.retired(closing)
	if p.retiring != nil {
		t.Error("the agreed close has not ended")
	}
}
