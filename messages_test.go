package pleach

import (
	"testing"

	"github.com/pleach-go/pleach/internal/driver/prefetch"
)

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
