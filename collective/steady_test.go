package collective_test

// What a short call costs in its own process: its CPU time and its allocations, without
// those of another process and of a network. Where there are more processes than
// processors, this is how long the call takes.

import (
	"context"
	"sync"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// mirror is the transport of rank 0 of two. Rank 1 makes the same calls at the same time, so
// it sends the same frames: the mirror returns each one with sender and receiver exchanged.
type mirror struct {
	mu      sync.Mutex
	handler transport.Handler
	frames  [][]byte // on their way back
	spare   [][]byte
	ended   bool
	running sync.WaitGroup
}

const (
	peer           = protocol.Rank(1)
	unicastFrame   = 0x81
	heartbeatFrame = 0x82
	// Of a unicast frame with the header of a message: where the tasks are in it.
	fromTask, toTask = 40 + 24, 40 + 28
)

func (m *mirror) Start(h transport.Handler) error {
	m.handler = h
	m.running.Go(func() { h.Up(peer, 1) })
	return nil
}

func (m *mirror) Close() error {
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.running.Wait()
	return nil
}

func (m *mirror) Send(to protocol.Rank, frame []byte) error { return m.SendVector(to, frame, nil) }

func (m *mirror) SendVector(_ protocol.Rank, head, body []byte) error {
	if head[0] != unicastFrame && head[0] != heartbeatFrame {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var f []byte
	if n := len(m.spare); n > 0 {
		f, m.spare = m.spare[n-1], m.spare[:n-1]
	}
	f = append(append(f[:0], head...), body...)
	if len(f) >= toTask+4 {
		for i := range 4 {
			f[fromTask+i], f[toTask+i] = f[toTask+i], f[fromTask+i]
		}
	}
	m.frames = append(m.frames, f)
	return nil
}

func (m *mirror) Poll(protocol.Rank) (received, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.frames) > 0 && !m.ended {
		f := m.frames[0]
		m.frames = m.frames[:copy(m.frames, m.frames[1:])]
		m.mu.Unlock()
		m.handler.Receive(peer, f)
		m.mu.Lock()
		m.spare, received = append(m.spare, f), true
	}
	return received, true
}

func (m *mirror) Rest()   { m.Poll(peer) }
func (m *mirror) Cork()   {}
func (m *mirror) Uncork() {}

// newMirrored returns a process whose only peer mirrors it.
func newMirrored(t testing.TB) *pleach.World {
	w, err := pleach.NewWorld(context.Background(), pleach.Config{
		Group: "job", Addresses: []string{"127.0.0.1:1", "127.0.0.1:2"}, Network: pleach.Network{Transport: &mirror{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Abort() })
	return w
}

// shortCalls are calls of 8 bytes.
func shortCalls(w *pleach.World) map[string]func(ctx context.Context) error {
	in, sum, into := []int64{1}, collective.Sum[int64](), collective.Into(make([]int64, 1))
	return map[string]func(ctx context.Context) error{
		"barrier": func(ctx context.Context) error { return collective.Barrier(ctx, w) },
		"allreduce": func(ctx context.Context) error {
			_, err := collective.Allreduce(ctx, w, in, sum, into)
			return err
		},
		"allreduce-new": func(ctx context.Context) error {
			_, err := collective.Allreduce(ctx, w, in, sum)
			return err
		},
	}
}

func BenchmarkShortCall(b *testing.B) {
	w := newMirrored(b)
	for name, call := range shortCalls(w) {
		b.Run(name, func(b *testing.B) {
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if err := call(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A call uses the memory of former ones. What is left is of the call's types and options,
// which the engine does not know.
func TestShortCallsHardlyAllocate(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	w := newMirrored(t)
	limits := map[string]float64{"barrier": 1, "allreduce": 4, "allreduce-new": 5}
	for name, call := range shortCalls(w) {
		t.Run(name, func(t *testing.T) {
			allocs := testing.AllocsPerRun(2000, func() {
				if err := call(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
			if allocs > limits[name] {
				t.Errorf("%v allocations for each call, %v at most", allocs, limits[name])
			}
		})
	}
}
