package pleach

import (
	"sync/atomic"
	"testing"

	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// nowhere is a transport without peers.
type nowhere struct{}

func (nowhere) Start(transport.Handler) error    { return nil }
func (nowhere) Send(protocol.Rank, []byte) error { return transport.ErrDown }
func (nowhere) Close() error                     { return nil }

// A step that brings more messages than are prefetched leaves the rest to the same
// dispatch: no further step need come.
func TestDispatchOfManyMessagesInOneStep(t *testing.T) {
	const messages = 3 * prefetchCount
	var count atomic.Int64
	g, err := Start(t.Context(), Config{
		Transport: nowhere{}, Rank: 0, Size: 2,
		Handler: func(Message) { count.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	root, err := stream.New(stream.Config{Rank: 1, Size: 2, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	_ = g.node.Do(func(now protocol.Time) {
		for range messages {
			if err := root.Write([]byte("one of many"), 0); err != nil {
				t.Error(err)
			}
			root.FlushBatch()
			for _, head, body, ok := root.Next(now); ok; _, head, body, ok = root.Next(now) {
				if err := g.inputs.Receive(now, 1, append(head, body...)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	g.dispatch()
	g.node.Look(func() {
		if g.deliverable() && !g.pending.Load() && !g.dispatching.Load() {
			t.Errorf("%d of %d messages are with the program, and the rest waits for another step", count.Load(), messages)
		}
	})
}
