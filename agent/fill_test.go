package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A newcomer gets the last message of a topic: from its own agent, or from one that was there
// before its agent; and then those that follow, each once.
func TestLastValue(t *testing.T) {
	addresses := testutil.FreeAddresses(t, 2)
	first := start(t, fmt.Sprintf("listen: %s\nid: a\nexpect: 1", addresses[0]))
	topic := "config"
	send := func(text string) {
		t.Helper()
		if _, err := first.Broadcast(t.Context(), topic, []byte(text), true, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	send("old")
	send("v1")
	second := start(t, fmt.Sprintf("listen: %s\nid: b\nseeds: [%s]", addresses[1], addresses[0]))
	for _, a := range []*testAgent{second, first} {
		events, cut := a.subscribe(t, client.Subscription{Topic: &topic, Last: true})
		if e := next(t, events); e.Message == nil || e.Message.Data != "v1" || e.Message.From.ID != "a" || e.ID == "" {
			t.Errorf("got %+v", e)
		}
		send("v2")
		e := next(t, events)
		if e.Message == nil || e.Message.Data != "v2" {
			t.Errorf("got %+v", e)
		}
		cut()
		again, cut := a.subscribe(t, client.Subscription{Topic: &topic, Last: true, After: e.ID})
		send("v1")
		if e := next(t, again); e.Message == nil || e.Message.Data != "v1" {
			t.Errorf("again: got %+v", e)
		}
		cut()
	}
	other := "none"
	events, _ := second.subscribe(t, client.Subscription{Topic: &other, Last: true})
	if _, err := first.Broadcast(t.Context(), other, []byte("first"), false, time.Minute); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events); e.Message == nil || e.Message.Data != "first" {
		t.Errorf("got %+v", e)
	}
}
