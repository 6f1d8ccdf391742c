package group_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// With Echo, a member receives its own broadcasts in their order, with and without a topic, and a
// subscription receives those of others only.
func TestEchoDeliversOwnBroadcasts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var got []string
	a, err := pleach.Create(ctx, pleach.Config{
		Delivery: pleach.Delivery{Echo: true},
		OnMessage: func(m pleach.Message, _ error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf("%d %q %s %d", m.From, m.Topic, m.Data, m.View))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	topic, err := a.Subscribe("t")
	if err != nil {
		t.Fatal(err)
	}
	b, err := pleach.Join(ctx, pleach.Config{}, a.Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	awaitView(t, a, "both", ofSize(2))
	view := a.View().Number
	var want []string
	for i, topic := range []string{"", "t", "u", ""} {
		send := func() error { return a.BroadcastTopic(ctx, topic, fmt.Append(nil, i)) }
		if topic == "" {
			send = func() error { return a.Broadcast(ctx, fmt.Append(nil, i)) }
		}
		if err := send(); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("0 %q %d %d", topic, i, view))
	}
	if err := b.BroadcastTopic(ctx, "t", []byte("b")); err != nil {
		t.Fatal(err)
	}
	for m := range topic.Messages(ctx) {
		if m.From != 1 {
			t.Errorf("the subscription has %q of rank %d", m.Data, m.From)
		}
		break
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// noState is a State that has nothing to say.
type noState struct{}

func (noState) Snapshot(io.Writer) error { return nil }

func (noState) Restore(io.Reader) error { return nil }

// With a State, OnMessage gets this process's own broadcasts at once, also where no other member
// is whose frames would bring them: Broadcast itself hands them over, unless the group does so at
// the same moment.
func TestStateDeliversOwnBroadcasts(t *testing.T) {
	const broadcasts = 10
	got := make(chan string, broadcasts)
	a, err := pleach.Create(t.Context(),
		pleach.Config{State: noState{}, OnMessage: func(m pleach.Message, _ error) { got <- string(m.Data) }})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for i := range broadcasts {
		if err := a.Broadcast(t.Context(), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) == 0 {
		t.Errorf("after %d broadcasts, none has come", broadcasts)
	}
	for i := range broadcasts {
		if text := <-got; text != fmt.Sprint(i) {
			t.Errorf("got %q, want %d", text, i)
		}
	}
}
