package node_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/driver/node"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// handed is a transport that keeps its handler, for a test to call.
type handed struct{ transport.Handler }

func (h *handed) Start(to transport.Handler) error { h.Handler = to; return nil }
func (*handed) Send(protocol.Rank, []byte) error   { return nil }
func (*handed) Close() error                       { return nil }

type watcher struct{ log []string }

func (w *watcher) Up(peer protocol.Rank, _ uint64) { w.log = append(w.log, fmt.Sprint("up ", peer)) }

func (w *watcher) Down(peer protocol.Rank, _ error) { w.log = append(w.log, fmt.Sprint("down ", peer)) }

// A connection that was closed for being idle is no evidence against the peer. The
// protocol learns of it with the next connection.
func TestIdleConnectionIsNoNews(t *testing.T) {
	tr, e, w := new(handed), new(echo), new(watcher)
	n := node.New(node.Config{Transport: tr, Protocol: e, Watcher: w})
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	tr.Up(1, 7)
	tr.Down(1, fmt.Errorf("rank 1: %w", transport.ErrIdle))
	if want := []string{"up 1"}; !slices.Equal(e.logged(), want) || !slices.Equal(w.log, want) {
		t.Errorf("%q, %q", e.logged(), w.log)
	}
	if n.Peer(1).Connected {
		t.Error("it counts as connected")
	}
	tr.Up(1, 7)
	if want := []string{"up 1", "down 1", "up 1"}; !slices.Equal(e.logged(), want) || !n.Peer(1).Connected {
		t.Errorf("%q", e.logged())
	}
	tr.Up(2, 7)
	tr.Down(2, fmt.Errorf("rank 2: %w", transport.ErrIdle))
	tr.Up(2, 7)
	tr.Up(2, 7) // another connection: the protocol has heard of the idle one
	if want := []string{"up 2", "down 2", "up 2", "up 2"}; !slices.Equal(e.logged()[3:], want) {
		t.Errorf("%q", e.logged())
	}
	e.log, w.log = e.log[:3], w.log[:2]
	tr.Down(1, fmt.Errorf("rank 1: %w", transport.ErrIdle))
	tr.Down(1, transport.ErrDown) // it cannot be dialed
	tr.Up(1, 8)
	if want := []string{"up 1", "down 1", "up 1", "down 1", "up 1"}; !slices.Equal(e.logged(), want) {
		t.Errorf("%q", e.logged())
	}
	if want := []string{"up 1", "up 1", "down 1", "up 1"}; !slices.Equal(w.log, want) {
		t.Errorf("%q", w.log)
	}
}
