package pleach

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/driver/prefetch"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// Subscription receives the broadcasts of one topic of a group. Its methods are safe for
// concurrent use.
//
// Every member forwards the messages of every topic, so a topic has the order and the
// guarantees of the group's broadcasts. A member keeps only those for its program that it
// subscribes to.
type Subscription struct {
	group      *Group
	name       string
	given      bool                       // in Config.Delivery.Topics, and not asked for yet
	at         atomic.Pointer[enrollment] // in the present membership
	arrived    chan struct{}              // there may be a message
	closed     chan struct{}
	prefetched prefetched
	progress   progress
}

// enrollment is a subscription in one membership.
type enrollment struct {
	receiver *receiver
	id       uint64
}

// topics are the subscriptions of a group, over all its memberships.
type topics struct {
	mu   sync.Mutex
	list []*Subscription
}

// TopicError is returned for a name that no topic can have.
type TopicError struct {
	// Topic is the name: see [Group.Subscribe] for those that are allowed.
	Topic string
}

func (e *TopicError) Error() string {
	return fmt.Sprintf("pleach: no topic can be called %.64q: a name has 1 to %d bytes of UTF-8 without control characters", e.Topic, stream.MaxTopic)
}

// Subscribe subscribes this process to the messages that other members broadcast to a topic
// from now on. A name has 1 to 255 bytes of UTF-8 without control characters; any other
// one is a [*TopicError]. Several subscriptions of one name may exist: each gets every
// message.
//
// A subscription is read, or closed: what waits in it counts toward
// Config.Limits.InboxBytes, together with what waits for [Group.Messages] and in other
// subscriptions. So an unread one makes this process slow. Messages of topics that this
// process does not subscribe to are dropped when they arrive.
//
// Subscriptions stay when this process joins again: then they first yield a [*GapError]. The first
// subscription to a topic of Config.Delivery.Topics is the one that was made before the first view.
func (g *Group) Subscribe(name string) (*Subscription, error) {
	s := g.session()
	if !stream.ValidTopic(name) {
		return nil, s.wrap("subscribe", &TopicError{name})
	}
	if err := g.Err(); err != nil {
		return nil, s.wrap("subscribe", err)
	}
	g.topics.mu.Lock()
	defer g.topics.mu.Unlock()
	for _, t := range g.topics.list {
		if t.given && t.name == name {
			t.given = false
			return t, nil
		}
	}
	t := g.newSubscription(name, false)
	s = g.session()
	if s.node.Do(func(protocol.Time) { s.receiver.subscribe(t, nil) }) != nil && g.Err() != nil {
		return nil, s.wrap("subscribe", ErrClosed)
	} // otherwise the next membership adds it
	g.topics.list = append(g.topics.list, t)
	return t, nil
}

// newSubscription returns a subscription that no membership has yet.
func (g *Group) newSubscription(name string, given bool) *Subscription {
	return &Subscription{group: g, name: name, given: given, arrived: make(chan struct{}, 1), closed: make(chan struct{})}
}

// subscribe subscribes in this membership. It is called within node.Do, or before the member
// begins.
func (r *receiver) subscribe(t *Subscription, gap *GapError) {
	id := r.machine.Subscribe(t.name)
	r.topics[id] = t
	t.progress.Begin(r.view.Load().Number, gap != nil, false)
	t.at.Store(&enrollment{r, id})
}

// BroadcastTopic broadcasts data to a topic: like [Group.Broadcast], in one order with all
// other broadcasts of this process, but only members that subscribe to the topic receive
// it. This process need not subscribe. The name counts toward Config.Limits.MaxMessage.
func (g *Group) BroadcastTopic(ctx context.Context, topic string, data []byte) error {
	if !stream.ValidTopic(topic) {
		return g.session().wrap("broadcast", &TopicError{topic})
	}
	return g.session().sender.broadcast(ctx, topic, data, nil)
}

// Topic returns the name of the topic.
func (t *Subscription) Topic() string { return t.name }

// Broadcast broadcasts data to the topic: see [Group.BroadcastTopic]. It does so after
// Close, too, which ends only the subscription.
func (t *Subscription) Broadcast(ctx context.Context, data []byte) error {
	return t.group.session().sender.broadcast(ctx, t.name, data, nil)
}

// Messages yields what other members broadcast to the topic, as [Group.Messages] yields
// what has no topic: the messages of one member in the order in which it made them. An error is a
// [*LostError], which counts messages of every topic, or a [*GapError], and does not end the loop. The
// loop ends without an error when ctx ends, after Close, or when this process is no longer a member. If
// several goroutines receive from one subscription, each message goes to one of them.
//
// With Config.State, it also yields this process's own messages, and nothing before this
// process has the state. What it yields is no part of the state; see [State].
func (t *Subscription) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		t.progress.Resume()
		for ctx.Err() == nil {
			i, ok := t.next(ctx)
			if ok && i.gap != nil {
				t.progress.Complete(i.View)
			}
			switch {
			case !ok:
				return
			case !yield(i.result()):
				t.progress.leave(&i)
				return
			}
			t.progress.done(&i)
			t.group.session().consumers.noteProcessed()
		}
	}
}

// next returns the next message, or marker for an error, as soon as there is one. It reports false
// at the end.
func (t *Subscription) next(ctx context.Context) (item, bool) {
	for !t.isClosed() {
		s := t.group.session()
		if i, ok := t.prefetched.Next(); ok {
			s.receiver.received.Add(1)
			return i, true
		}
		err := s.receiver.receive(ctx, &t.prefetched, t.arrived, func(now protocol.Time) bool {
			return t.isClosed() || t.prefetch(now)
		})
		if err != nil && !t.group.goesOn(ctx, s, &t.prefetched, t.closed) {
			return item{}, false
		}
	}
	notify.Signal(t.arrived) // to the next goroutine that receives
	return item{}, false
}

func (t *Subscription) isClosed() bool {
	select {
	case <-t.closed:
		return true
	default:
		return false
	}
}

// prefetch takes messages from the member, as that of the group does. If it leaves some,
// another goroutine that receives may take them.
func (t *Subscription) prefetch(now protocol.Time) bool {
	at := t.at.Load()
	r := at.receiver
	if r.replica.lacking() {
		return false
	}
	filled := t.prefetched.Fill(func() { r.machine.DeliverTopicEach(now, at.id, prefetch.Count, t.prefetched.add) })
	left := r.stream.PendingTopic(at.id) > 0
	if left {
		notify.Signal(t.arrived)
	}
	drained := r.config.State == nil && !left
	t.prefetched.Drained.Store(drained)
	return filled || drained
}

// wakeReceivers wakes the receivers of the subscription, as that of the group does.
func (t *Subscription) wakeReceivers(now protocol.Time) {
	at := t.at.Load()
	if r, p := at.receiver, &t.prefetched; p.Drained.Load() {
		if !r.stream.Withholding() {
			p.Fill(func() { r.machine.DeliverTopicEach(now, at.id, prefetch.Count, p.add) })
		}
		p.Drained.Store(r.stream.PendingTopic(at.id) == 0)
	}
	notify.Signal(t.arrived)
}

// Close ends the subscription. What was not received is dropped.
func (t *Subscription) Close() error {
	g := t.group
	g.topics.mu.Lock()
	defer g.topics.mu.Unlock()
	if t.isClosed() {
		return nil
	}
	close(t.closed)
	g.topics.list = slices.DeleteFunc(g.topics.list, func(o *Subscription) bool { return o == t })
	s := g.session()
	_ = s.node.Do(func(now protocol.Time) { // otherwise the membership has ended, and the subscription with it
		id := t.at.Load().id
		delete(s.receiver.topics, id)
		s.machine.Unsubscribe(now, id)
	})
	t.prefetched.Drop()
	t.prefetched.Drained.Store(false) // a goroutine that receives finds it closed
	notify.Signal(t.arrived)
	return nil
}

// wakeTopics wakes the receivers of all subscriptions. It is called within
// node.Do.
func (r *receiver) wakeTopics() {
	for _, t := range r.topics {
		notify.Signal(t.arrived)
	}
}
