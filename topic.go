package pleach

import (
	"context"
	"fmt"
	"iter"

	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
)

// Topic is a subscription to the broadcasts of one topic of a group. Its methods are safe
// for concurrent use.
//
// Every member forwards the messages of every topic, so a topic has the order and the
// guarantees of the group's broadcasts. A member keeps only those for its program that it
// subscribes to.
type Topic struct {
	group      *Group
	name       string
	id         uint64
	arrived    chan struct{} // there may be a message; closed at the end
	closed     bool          // used within node.Do
	prefetched prefetched
}

// TopicError is returned for a name that no topic can have.
type TopicError struct {
	// Topic is the name: see [Group.Topic] for those that are allowed.
	Topic string
}

func (e *TopicError) Error() string {
	return fmt.Sprintf("pleach: no topic can be called %.64q: a name has 1 to %d bytes of UTF-8 without control characters", e.Topic, stream.MaxTopic)
}

// Topic subscribes this process to the messages that other members broadcast to a topic
// from now on. A name has 1 to 255 bytes of UTF-8 without control characters; any other
// one is a [*TopicError]. Several subscriptions of one name may exist: each gets every
// message.
//
// A subscription is read, or closed: what waits in it counts toward
// Config.Limits.InboxBytes, together with what waits for [Group.Messages] and in other
// subscriptions. So an unread one makes this process slow. Messages of topics that this
// process does not subscribe to are dropped when they arrive.
//
// Subscriptions end with the membership: a process that rejoins subscribes again.
func (g *Group) Topic(name string) (*Topic, error) {
	if !stream.ValidTopic(name) {
		return nil, g.wrap("subscribe", &TopicError{name})
	}
	if err := g.Err(); err != nil {
		return nil, g.wrap("subscribe", err)
	}
	t := &Topic{group: g, name: name, arrived: make(chan struct{}, 1)}
	err := g.node.Do(func(protocol.Time) {
		t.id = g.inputs.Subscribe(name)
		g.topics[t.id] = t
	})
	if err != nil {
		return nil, g.wrap("subscribe", ErrClosed)
	}
	return t, nil
}

// BroadcastTopic broadcasts data to a topic: like [Group.Broadcast], in one order with all
// other broadcasts of this process, but only members that subscribe to the topic receive
// it. This process need not subscribe. The name counts toward Config.Limits.MaxMessage.
func (g *Group) BroadcastTopic(ctx context.Context, topic string, data []byte) error {
	if !stream.ValidTopic(topic) {
		return g.wrap("broadcast", &TopicError{topic})
	}
	return g.broadcast(ctx, topic, data, nil)
}

// Name returns the name of the topic.
func (t *Topic) Name() string { return t.name }

// Broadcast broadcasts data to the topic: see [Group.BroadcastTopic]. It does so after
// Close, too, which ends only the subscription.
func (t *Topic) Broadcast(ctx context.Context, data []byte) error {
	return t.group.broadcast(ctx, t.name, data, nil)
}

// Messages yields what other members broadcast to the topic, as [Group.Messages] yields
// what has no topic: the messages of one member in the order in which it made them, and
// notices of loss. The notices count messages of every topic. It ends when ctx ends, after
// Close, or when this process is no longer a member. If several goroutines receive from
// one subscription, each message goes to one of them.
//
// With Config.State, it also yields this process's own messages, and nothing before this
// process has the state. What it yields is no part of the state; see [State].
func (t *Topic) Messages(ctx context.Context) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		for ctx.Err() == nil {
			m, ok := t.next(ctx)
			if !ok || !yield(m) {
				return
			}
		}
	}
}

// next returns the next message, as soon as there is one. It reports false at the end.
func (t *Topic) next(ctx context.Context) (Message, bool) {
	for {
		if m, ok := t.prefetched.next(); ok {
			return m, true
		}
		ended := false
		err := t.group.receive(ctx, &t.prefetched, t.arrived, func(now protocol.Time) bool {
			ended = t.closed
			return ended || t.prefetch(now)
		})
		if ended || err != nil {
			return Message{}, false
		}
	}
}

// prefetch takes messages from the member, as that of the group does. If it leaves some,
// another goroutine that receives may take them.
func (t *Topic) prefetch(now protocol.Time) bool {
	g := t.group
	if g.replica.lacking {
		return false
	}
	filled := t.prefetched.fill(func(p *prefetched) { g.inputs.DeliverTopicEach(now, t.id, prefetchCount, p.add) })
	left := g.stream.PendingTopic(t.id) > 0
	if left {
		give(t.arrived)
	}
	drained := g.config.State == nil && !left
	t.prefetched.drained.Store(drained)
	return filled || drained
}

// handOver gives a sign to those who receive, as that of the group does.
func (t *Topic) handOver(now protocol.Time) {
	if g, p := t.group, &t.prefetched; p.drained.Load() {
		if !g.stream.Withholding() {
			p.fill(func(p *prefetched) { g.inputs.DeliverTopicEach(now, t.id, prefetchCount, p.add) })
		}
		p.drained.Store(g.stream.PendingTopic(t.id) == 0)
	}
	give(t.arrived)
}

// Close ends the subscription. What was not received is dropped.
func (t *Topic) Close() error {
	_ = t.group.node.Do(func(now protocol.Time) { // otherwise the membership has ended, and the subscription with it
		if !t.closed {
			t.closed = true
			delete(t.group.topics, t.id)
			t.group.inputs.Unsubscribe(now, t.id)
			t.prefetched.drop()
			t.prefetched.drained.Store(false) // who receives finds it closed
			close(t.arrived)
		}
	})
	return nil
}

// wakeTopics gives a sign to those who receive from any subscription. It is called within
// node.Do.
func (g *Group) wakeTopics() {
	for _, t := range g.topics {
		give(t.arrived)
	}
}
