package group_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// subscribe subscribes until the end of the test.
func subscribe(t *testing.T, g *pleach.Group, name string) *pleach.Subscription {
	t.Helper()
	topic, err := g.Subscribe(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := topic.Close(); err != nil {
			t.Error(err)
		}
	})
	return topic
}

// labels returns the topic and the label of the next n messages: their data up to a space.
func labels(messages iter.Seq2[pleach.Message, error], n int) (got []string) {
	for m := range messages {
		label, _, _ := strings.Cut(string(m.Data), " ")
		got = append(got, fmt.Sprintf("%s/%s", m.Topic, label))
		if len(got) == n {
			break
		}
	}
	return got
}

// One member broadcasts to two topics and to none, short messages, bursts and long ones.
// Each subscription has the messages of its topic in their order, two of one name have the
// same, Messages has those without a topic, and a handler all of them.
func TestTopics(t *testing.T) {
	const messages = 600
	handled := make(chan pleach.Message, messages)
	groups := service(t, 3, func(r int, c *pleach.Config) {
		if r == 2 {
			c.OnMessage = func(m pleach.Message, _ error) { handled <- m }
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	news, again, prices := subscribe(t, groups[1], "news"), subscribe(t, groups[1], "news"),
		subscribe(t, groups[1], "prices £")
	handlerNews := subscribe(t, groups[2], "news")
	want := map[string][]string{}
	var all []string
	for i := range messages {
		topic := []string{"", "news", "prices £", "news", "unread"}[i/7%5] // runs, for batches
		label := fmt.Sprintf("%s/%d", topic, i)
		want[topic], all = append(want[topic], label), append(all, label)
		data := fmt.Sprintf("%d %s", i, strings.Repeat("x", i%100))
		if i%50 == 0 {
			data += strings.Repeat("long", 50_000)
		}
		var err error
		if topic == "" {
			err = groups[0].Broadcast(ctx, []byte(data))
		} else {
			err = groups[0].BroadcastTopic(ctx, topic, []byte(data))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	compare := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d messages %v, want %d: %v", what, len(got), got, len(want), want)
		}
	}
	for what, topic := range map[string]*pleach.Subscription{
		"the first": news, "the second": again, "another": prices,
		"beside a handler": handlerNews,
	} {
		compare(what, labels(topic.Messages(ctx), len(want[topic.Topic()])), want[topic.Topic()])
	}
	compare("no topic", labels(groups[1].Messages(ctx), len(want[""])), want[""])
	compare("the handler", labels(func(yield func(pleach.Message, error) bool) {
		for m := range handled {
			if !yield(m, nil) {
				return
			}
		}
	}, messages), all)
}

// A topic that a member does not subscribe to does not make it slow, although its program
// receives nothing.
func TestUnsubscribedTopicIsDropped(t *testing.T) {
	groups := service(t, 2, func(_ int, c *pleach.Config) {
		c.Limits = pleach.Limits{InboxBytes: 64 << 10, OutboxBytes: 64 << 10, SlowTimeout: time.Second}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 200 {
		if err := groups[0].BroadcastTopic(ctx, "logs", make([]byte, 32<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := groups[0].Broadcast(ctx, []byte("end")); err != nil {
		t.Fatal(err)
	}
	if r, err := groups[0].WaitStable(ctx); err != nil || len(r.Members) != 2 {
		t.Errorf("receipt %+v, %v", r, err)
	}
	if got := labels(groups[1].Messages(ctx), 1); !slices.Equal(got, []string{"/end"}) {
		t.Errorf("received %v", got)
	}
	if s := groups[1].Stats(); s.Delivered != 1 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
}

// A program that does not receive what it subscribes to leaves the group, as one that does
// not receive what has no topic, and its subscriptions end.
func TestUnreadTopicIsSlow(t *testing.T) {
	groups := service(t, 3, func(_ int, c *pleach.Config) {
		c.Limits = pleach.Limits{InboxBytes: 64 << 10, OutboxBytes: 64 << 10, SlowTimeout: time.Second}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const messages = 100
	unread, read := subscribe(t, groups[2], "logs"), subscribe(t, groups[1], "logs")
	got := make(chan int)
	go func() { got <- len(labels(read.Messages(ctx), messages)) }()
	for range messages {
		if err := groups[0].BroadcastTopic(ctx, "logs", make([]byte, 32<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if n := <-got; n != messages {
		t.Errorf("%d of %d messages", n, messages)
	}
	for range groups[2].Messages(ctx) { // until it has left
		t.Error("a message without a topic")
	}
	if err := groups[2].Err(); !errors.Is(err, pleach.ErrTooSlow) {
		t.Errorf("the slow member's Err is %v", err)
	}
	if n := len(labels(unread.Messages(ctx), messages)); n == messages {
		t.Error("the slow member has everything")
	}
	if _, err := groups[2].Subscribe("logs"); err == nil {
		t.Error("a process that is no member has subscribed")
	}
}

// A sender that waits for a subscription goes on when that is closed.
func TestCloseOfFullTopic(t *testing.T) {
	groups := service(t, 2, func(_ int, c *pleach.Config) {
		c.Limits = pleach.Limits{InboxBytes: 64 << 10, OutboxBytes: 64 << 10, SlowTimeout: time.Minute}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	full := subscribe(t, groups[1], "logs")
	var err error
	for err == nil {
		briefly, done := context.WithTimeout(ctx, 300*time.Millisecond)
		err = groups[0].BroadcastTopic(briefly, "logs", make([]byte, 32<<10))
		done()
	}
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if err := full.Close(); err != nil {
		t.Error(err)
	}
	for range 20 {
		if err := groups[0].BroadcastTopic(ctx, "logs", make([]byte, 32<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := groups[0].WaitStable(ctx); err != nil {
		t.Error(err)
	}
}

// Close ends Messages in every goroutine and drops what was not received. A closed
// subscription still broadcasts.
func TestCloseOfTopic(t *testing.T) {
	groups := service(t, 2, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	topic := subscribe(t, groups[1], "t")
	for _, text := range []string{"one", "two"} {
		if err := groups[0].BroadcastTopic(ctx, "t", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := groups[0].WaitStable(ctx); err != nil {
		t.Fatal(err)
	}
	if got := labels(topic.Messages(ctx), 1); !slices.Equal(got, []string{"t/one"}) {
		t.Errorf("received %v", got)
	}
	waiting := subscribe(t, groups[1], "t")
	var ended sync.WaitGroup
	for range 3 {
		ended.Go(func() {
			if got := labels(waiting.Messages(ctx), 1); len(got) > 0 {
				t.Errorf("received %v", got)
			}
		})
	}
	for _, closed := range []*pleach.Subscription{topic, waiting, topic} {
		if err := closed.Close(); err != nil {
			t.Error(err)
		}
	}
	ended.Wait()
	if got := labels(topic.Messages(ctx), 1); len(got) > 0 || ctx.Err() != nil {
		t.Errorf("received %v, %v", got, ctx.Err())
	}
	back := subscribe(t, groups[0], "t")
	if err := topic.Broadcast(ctx, []byte("back")); err != nil {
		t.Error(err)
	}
	if got := labels(back.Messages(ctx), 1); !slices.Equal(got, []string{"t/back"}) {
		t.Errorf("received %v", got)
	}
}

// A joiner receives nothing from a subscription before it has the state. Then it gets all
// that was broadcast to the topic since it has subscribed, and its own messages.
func TestTopicsAndState(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first := service(t, 1, func(_ int, c *pleach.Config) { c.State = &ledger{} })[0]
	var receiving sync.WaitGroup
	defer receiving.Wait()
	defer cancel()
	receive := func(g *pleach.Group) {
		receiving.Go(func() {
			for m := range g.Messages(ctx) {
				t.Errorf("received %+v", m)
			}
		})
	}
	receive(first)
	var restored atomic.Bool
	joiner := member(t)(pleach.Join(ctx, pleach.Config{
		Group: "service", State: &ledger{onRestore: func() { restored.Store(true) }},
	}, first.Self().Address))
	topic := subscribe(t, joiner, "t")
	if err := first.BroadcastTopic(ctx, "t", []byte("early")); err != nil {
		t.Fatal(err)
	}
	if _, err := first.WaitStable(ctx); err != nil {
		t.Fatal(err)
	}
	got := make(chan []string, 2)
	receiving.Go(func() {
		for m := range topic.Messages(ctx) {
			if !restored.Load() {
				t.Error("a message before the state")
			}
			got <- []string{m.Topic, string(m.Data)}
		}
	})
	select {
	case m := <-got:
		t.Fatalf("received %q before the state", m)
	case <-time.After(100 * time.Millisecond): // usually it waits by now
	}
	receive(joiner)
	expect := func(want string) {
		t.Helper()
		select {
		case m := <-got:
			if !slices.Equal(m, []string{"t", want}) {
				t.Errorf("received %q, want %q", m, want)
			}
		case <-ctx.Done():
			t.Fatalf("not received: %q", want)
		}
	}
	expect("early")
	if err := topic.Broadcast(ctx, []byte("own")); err != nil {
		t.Fatal(err)
	}
	expect("own")
}

// Names that no topic can have are refused, and the name counts toward MaxMessage.
func TestTopicNames(t *testing.T) {
	g := service(t, 1, func(_ int, c *pleach.Config) { c.Limits.MaxMessage = 1000 })[0]
	for _, name := range []string{"", strings.Repeat("x", 256), "a\nb", "\x00", "\xff", "\u0085"} {
		var refused *pleach.TopicError
		if _, err := g.Subscribe(name); !errors.As(err, &refused) || refused.Topic != name {
			t.Errorf("%q: %v", name, err)
		}
		if err := g.BroadcastTopic(t.Context(), name, nil); !errors.As(err, &refused) {
			t.Errorf("%q: %v", name, err)
		}
	}
	longest := strings.Repeat("é", 127) + "x"
	if topic := subscribe(t, g, longest); topic.Topic() != longest {
		t.Errorf("%q", topic.Topic())
	}
	if err := g.BroadcastTopic(t.Context(), longest, make([]byte, 744)); err != nil {
		t.Error(err)
	}
	if err := g.BroadcastTopic(t.Context(), longest, make([]byte, 745)); err == nil {
		t.Error("a message that is too long with its topic was accepted")
	}
}
