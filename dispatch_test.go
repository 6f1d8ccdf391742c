package pleach

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/pleach-go/pleach/internal/driver/prefetch"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// nowhere is a transport without peers.
type nowhere struct{}

func (nowhere) Start(transport.Handler) error    { return nil }
func (nowhere) Send(protocol.Rank, []byte) error { return transport.ErrDown }
func (nowhere) Close() error                     { return nil }

// source is the other member of a group of two.
type source struct {
	t      *testing.T
	g      *Group
	stream *stream.Member
	sent   int
}

func newSource(t *testing.T, g *Group) *source {
	t.Helper()
	root, err := stream.New(stream.Config{Rank: 1, Size: 2, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &source{t, g, root, 0}
}

// step brings messages to the group, each of which is its number, in one step.
func (s *source) step(messages int) {
	_ = s.g.session().node.Do(func(now protocol.Time) {
		for range messages {
			if err := s.stream.Write([]byte(strconv.Itoa(s.sent)), 0); err != nil {
				s.t.Error(err)
			}
			s.sent++
			s.stream.FlushBatch()
			for _, head, body, ok := s.stream.Next(now); ok; _, head, body, ok = s.stream.Next(now) {
				if err := s.g.session().machine.Receive(now, 1, append(head, body...)); err != nil {
					s.t.Error(err)
				}
			}
		}
	})
}

// A program that waits in Messages gets what a step brings within that step, and takes the
// rest itself if there is more. It gets everything in order.
func TestStepHandsMessagesOver(t *testing.T) {
	g, err := Start(t.Context(), Config{Network: Network{Transport: nowhere{}, Size: 2}, Rank: 0})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	source := newSource(t, g)
	var received atomic.Int64
	go func() {
		for m := range g.Messages(t.Context()) {
			if n := received.Add(1); string(m.Data) != strconv.Itoa(int(n)-1) {
				t.Errorf("message %d is %q", n-1, m.Data)
			}
		}
	}()
	for _, messages := range []int{1, 1, 3 * prefetch.Count, 1, prefetch.Count + 1, 1} {
		testutil.Eventually(t, "all messages are received", func() bool {
			return g.session().receiver.prefetched.Drained.Load() && int(received.Load()) == source.sent
		})
		source.step(messages)
		g.session().node.Look(func() {
			if messages == 1 && g.session().receiver.deliverable() {
				t.Errorf("after %d messages, the next one was left to another step", source.sent-1)
			}
		})
	}
	testutil.Eventually(t, "the last message", func() bool { return int(received.Load()) == source.sent })
}

// A step that brings more messages than are prefetched leaves the rest to the same
// dispatch: no further step need come.
func TestDispatchOfManyMessagesInOneStep(t *testing.T) {
	const messages = 3 * prefetch.Count
	var count atomic.Int64
	g, err := Start(t.Context(), Config{
		Network: Network{Transport: nowhere{}, Size: 2}, Rank: 0,
		OnMessage: func(Message, error) { count.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	newSource(t, g).step(messages)
	g.session().receiver.dispatch()
	g.session().node.Look(func() {
		if g.session().receiver.deliverable() && !g.session().receiver.pending.Load() &&
			!g.session().receiver.dispatching.Load() {
			t.Errorf("%d of %d messages are with the program, and the rest waits for another step", count.Load(), messages)
		}
	})
}

// put puts messages into the queue of a member, as a step does.
func put(s *session, data []byte, messages int) {
	s.receiver.prefetched.Extend(func(int) {
		for range messages {
			s.receiver.prefetched.Add(item{Message: Message{From: 1, View: 1, Data: data}})
		}
	})
	s.receiver.pending.Store(true)
}

// What a message costs on its path to the program, it costs without allocating.
func TestMessagesAreNotAllocated(t *testing.T) {
	received, data := 0, []byte("x")
	handled, err := Start(t.Context(), Config{
		Network:   Network{Transport: nowhere{}, Size: 2},
		OnMessage: func(m Message, err error) { received += len(m.Data) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer handled.Close()
	looped, err := Start(t.Context(), Config{Network: Network{Transport: nowhere{}, Size: 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer looped.Close()
	ctx := t.Context()
	for name, program := range map[string]func(messages int){
		"OnMessage": func(messages int) {
			put(handled.session(), data, messages)
			handled.session().receiver.dispatch()
		},
		"Messages": func(messages int) {
			put(looped.session(), data, messages)
			left := messages
			for m, err := range looped.Messages(ctx) {
				if err != nil {
					t.Error(err)
				}
				received += len(m.Data)
				left--
				if left == 0 {
					break
				}
			}
		},
	} {
		few := testing.AllocsPerRun(100, func() { program(1) })
		many := testing.AllocsPerRun(100, func() { program(prefetch.Count) })
		if many > few {
			t.Errorf("%s: %v allocations for %d messages, and %v for one", name, many, prefetch.Count, few)
		}
	}
	if want := 2 * 101 * (1 + prefetch.Count); received != want {
		t.Errorf("%d messages received, want %d", received, want)
	}
}
