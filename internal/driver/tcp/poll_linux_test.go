package tcp

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// pollAll polls all peers of all members until the test ends. It returns a counter of the
// polls that have received something.
func pollAll(t *testing.T, members []*member) *atomic.Int64 {
	var received atomic.Int64
	var pollers sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for i, m := range members {
		pollers.Go(func() {
			for ctx.Err() == nil {
				for peer := range members {
					if peer == i {
						continue
					}
					if got, _ := m.Poll(protocol.Rank(peer)); got {
						received.Add(1)
					}
				}
				runtime.Gosched()
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		pollers.Wait()
	})
	return &received
}

// Frames arrive once and in order, whether the connection's goroutine or a poller reads
// them, and polls do receive some.
func TestPollersAndReadersShareAConnection(t *testing.T) {
	members := startGroup(t, 3, Config{})
	received := pollAll(t, members)
	exchange(t, members)
	eventually(t, "a poll that receives something", func() bool {
		mustSend(t, members[0], 1, []byte("again"))
		return received.Load() > 0
	})
}

// A connection that a poller finds broken is down, as if its goroutine had found it.
func TestPollersFindBrokenConnections(t *testing.T) {
	members := startGroup(t, 2, Config{})
	for range 20 {
		connect(t, members[1], members[0])
		if _, err := members[0].socket(1).Write([]byte{0xff, 0xff, 0xff, 0x00}); err != nil { // No frame is that long.
			t.Fatal(err)
		}
		for _, m := range members {
			peer := protocol.Rank(1 - int(m.cfg.Rank))
			eventually(t, "down", func() bool {
				m.Poll(peer)
				m.mu.Lock()
				defer m.mu.Unlock()
				return !m.up(peer)
			})
		}
		eventually(t, "a new dial", func() bool { return members[1].Send(0, nil) == nil })
	}
}

// A connection with TLS is not polled.
// Two pollers do not read one connection at a time: the second one is told that it is polled, if it
// can be.
func TestPollersTakeTurns(t *testing.T) {
	ca := testutil.NewCA(t)
	for can, cfg := range map[bool]Config{true: {}, false: {TLS: ca.Config(t, ca)}} {
		members := startGroup(t, 2, cfg)
		connect(t, members[0], members[1])
		p := members[1].peer(0)
		p.mu.Lock()
		c := p.conn
		p.mu.Unlock()
		held := c.polls.mu.TryLock() // or its goroutine has it
		if received, ok := c.poll(); received || ok != can {
			t.Errorf("%t, %t; it can be polled: %t", received, ok, can)
		}
		if held {
			c.polls.mu.Unlock()
		}
	}
}

func TestPollsLeaveTLSAlone(t *testing.T) {
	ca := testutil.NewCA(t)
	members := startGroup(t, 2, Config{TLS: ca.Config(t, ca)})
	connect(t, members[0], members[1])
	if _, ok := members[1].Poll(0); ok {
		t.Error("an encrypted connection was polled")
	}
	if _, ok := members[1].Poll(1); ok {
		t.Error("this member was polled")
	}
}

// A poller that closes the connection it reads does not wait for the connection's goroutine, which
// waits for the poller: as in a job, when a peer dies while a call polls it.
func TestPollersCloseTheirConnection(t *testing.T) {
	members := startGroup(t, 2, Config{})
	connect(t, members[0], members[1])
	p := members[1].peer(0)
	p.mu.Lock()
	c := p.conn
	p.mu.Unlock()
	eventually(t, "the reader waits for bytes", c.polls.mu.TryLock)
	mustSend(t, members[0], 1, []byte("wakes the reader"))
	eventually(t, "the reader waits for the poller", func() bool {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
			if bytes.Contains(stack, []byte("[sync.Mutex.Lock")) && bytes.Contains(stack, []byte("(*rawConn).Read")) {
				return true
			}
		}
		return false
	})
	var closed atomic.Bool
	go func() {
		p.mu.Lock()
		p.detach(c, net.ErrClosed)
		p.mu.Unlock()
		closed.Store(true)
		c.polls.mu.Unlock()
	}()
	eventually(t, "the connection is closed", closed.Load)
}

// A connection that has ended, or that a poller has found broken, has no reader that could sleep.
func TestEndedConnectionsNeedNoSleep(t *testing.T) {
	for open, err := range map[bool]error{true: net.ErrClosed, false: nil} {
		c := new(conn)
		c.polls.open, c.polls.err = open, err
		if !c.sleep(func(*pollLock) bool { t.Error("it may sleep"); return false }) {
			t.Errorf("open %t, %v: it is looked at again", open, err)
		}
	}
}
