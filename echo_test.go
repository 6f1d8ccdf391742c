package pleach_test

import (
	"context"
	"fmt"
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
	a, err := pleach.Create(ctx, pleach.Config{Echo: true, OnMessage: func(m pleach.Message) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf("%d %q %s %d", m.From, m.Topic, m.Data, m.View))
	}})
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
	for a.Size() < 2 {
		time.Sleep(time.Millisecond)
	}
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
