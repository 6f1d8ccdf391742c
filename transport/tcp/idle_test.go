package tcp

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Only a connection that no frame has used between two sweeps is closed, and the next
// frame opens it again.
func TestIdleConnectionIsClosed(t *testing.T) {
	checkGoroutines(t)
	m := startGroup(t, 2, Config{})
	connect(t, m[0], m[1])
	if m[0].peer(1).retire() {
		t.Error("a connection that is used is closed")
	}
	mustSend(t, m[0], 1, []byte("again"))
	if m[0].peer(1).retire() {
		t.Error("a connection that was used since is closed")
	}
	eventually(t, "idle", func() bool { return m[0].peer(1).retire() })
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
							peer.retire()
						}
					}
				})
				sending.Go(func() {
					for n := range frames {
						for deadline := time.Now().Add(10 * time.Second); m[i].Send(protocol.Rank(1-i), fmt.Append(nil, n)) != nil; time.Sleep(time.Millisecond) {
							if time.Now().After(deadline) {
								t.Error("cannot send")
								return
							}
						}
						if n%5 == 0 {
							time.Sleep(4 * time.Millisecond)
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
