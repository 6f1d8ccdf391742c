package stream

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/pleach-go/pleach/protocol"
)

// Topics: one stream of messages for several sorts of subscribers. A message with a topic
// travels as any other one, because every member forwards and keeps it. It begins with the
// name of its topic (label.go). A receiver puts it into the
// queue of each subscription to that topic, and drops it if it has none.

// MaxTopic is the longest name of a topic, in bytes.
const MaxTopic = 255

// ValidTopic reports whether a name may be that of a topic: 1 to MaxTopic bytes of UTF-8
// without control characters.
func ValidTopic(name string) bool {
	if len(name) == 0 || len(name) > MaxTopic || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}

// subscription is a queue for the messages of one topic.
type subscription struct {
	id    uint64
	topic string
	queue messageQueue
	fresh bool // it is in subscriptions.fresh
}

// subscriptions are those of the program.
type subscriptions struct {
	last    uint64 // the last ID
	byID    map[uint64]*subscription
	byTopic map[string][]*subscription
	fresh   []*subscription // those that have got something since the last look
}

// arrived records that a subscription has got something.
func (s *subscriptions) arrived(to *subscription) {
	if !to.fresh {
		to.fresh = true
		s.fresh = append(s.fresh, to)
	}
}

// pushTopic adds a message to the queues of its topic, and to the main queue if that has
// all topics. Each has a lease of its own.
func (b *inbox) pushTopic(m Message, all bool, buffer *reassemblyBuffer) {
	if all {
		m.Lease = buffer.lease()
		b.push(&b.main, m)
	}
	for _, s := range b.topics.byTopic[m.Topic] {
		m.Lease = buffer.lease()
		b.push(&s.queue, m)
		b.topics.arrived(s)
	}
}

// Subscribe begins a queue for the messages of a topic that are delivered from now on, and
// for notices. It returns the queue's ID. A topic may have several queues: each gets every
// message.
func (m *Member) Subscribe(topic string) (id uint64) {
	t := &m.inbox.topics
	if t.byID == nil {
		t.byID, t.byTopic = make(map[uint64]*subscription), make(map[string][]*subscription)
	}
	t.last++
	s := &subscription{id: t.last, topic: topic}
	t.byID[s.id] = s
	t.byTopic[topic] = append(t.byTopic[topic], s)
	return s.id
}

// Unsubscribe ends a queue and drops what is in it.
func (m *Member) Unsubscribe(now protocol.Time, id uint64) {
	t := &m.inbox.topics
	s := t.byID[id]
	if s == nil {
		return
	}
	delete(t.byID, id)
	same := func(other *subscription) bool { return other == s }
	t.fresh = slices.DeleteFunc(t.fresh, same)
	t.byTopic[s.topic] = slices.DeleteFunc(t.byTopic[s.topic], same)
	if len(t.byTopic[s.topic]) == 0 {
		delete(t.byTopic, s.topic)
	}
	for s.queue.Len() > 0 {
		m.inbox.discard(&s.queue)
	}
	m.noteMarks(now)
	m.resume(now)
}

// DeliverTopic returns the next message or notice of a subscription, or false if there is
// none.
func (m *Member) DeliverTopic(now protocol.Time, id uint64) (Message, bool) {
	s := m.inbox.topics.byID[id]
	if s == nil {
		return Message{}, false
	}
	return m.deliverFrom(now, &s.queue)
}

// DeliverTopicEach is DeliverEach for a subscription.
func (m *Member) DeliverTopicEach(now protocol.Time, id uint64, most int, take func(*Message)) {
	if s := m.inbox.topics.byID[id]; s != nil {
		m.deliverEach(now, &s.queue, most, take)
	}
}

// PendingTopic returns how many messages and notices wait for DeliverTopic.
func (m *Member) PendingTopic(id uint64) int {
	if s := m.inbox.topics.byID[id]; s != nil {
		return s.queue.Len()
	}
	return 0
}

// Arrived calls f with the ID of each subscription that has got something since the last
// call.
func (m *Member) Arrived(f func(id uint64)) {
	t := &m.inbox.topics
	for _, s := range t.fresh {
		s.fresh = false
		f(s.id)
	}
	clear(t.fresh)
	t.fresh = t.fresh[:0]
}

// Undelivered returns how many messages and notices wait for the program in all queues.
func (m *Member) Undelivered() int { return m.inbox.waiting }
