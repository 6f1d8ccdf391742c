// Package retention keeps the last messages of an agent in memory. A subscriber reads them at
// its own pace, and may come back later: it gets everything that is still retained, and the
// number of messages that it has missed beyond that. So a slow subscriber costs no memory and
// blocks neither the group nor another subscriber.
package retention

import (
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/base/queue"
)

// Message is what the agent has received or sent.
type Message struct {
	Topic string
	// From is the sender's rank, and FromID its name.
	From   int
	FromID string
	View   uint64
	Time   time.Time
	// Direct says that it was sent to this member alone. It has no topic.
	Direct bool
	// Fleet says that it was sent to all zones, by a member of Zone. Then From is -1.
	Fleet bool
	Zone  string
	// Index counts the broadcasts of From in View, from 1. All agents count alike. Of a message to
	// all zones, it counts those of FromID since its start Incarnation. It is 0 in other messages.
	Index       uint64
	Incarnation uint64
	Header      map[string]string // must not be changed; nil: none
	Data        []byte
	// Gap is empty in a message. Otherwise messages are missing here, for this reason: the
	// agent was not a member for a while. Missing counts them; 0: it is not known how many, or
	// whether any.
	Gap     string
	Missing uint64

	counter *counter // of its topic; nil for a gap
	ordinal uint64   // among the messages of its counter, from 1
}

// counter counts the messages of a topic, those that are no longer retained included.
type counter struct{ added, dropped uint64 }

// Limits bounds what a log retains.
type Limits struct {
	Messages, Bytes int
	// Topics is how many topics are counted each for itself; the others are counted
	// together. If zero, 4096.
	Topics int
}

// overhead is the approximate memory of a message without its data and topic.
const overhead = 160

// Log retains messages. Its methods may be called by several goroutines.
type Log struct {
	limits Limits
	added  notify.Notifier

	mu       sync.Mutex
	epochs   []Epoch // the last ones; the last of them is the present one
	retained queue.Queue[Message]
	first    uint64 // the number of the first one that is retained, from 1
	bytes    int
	topics   map[string]*counter
	others   counter // of topics beyond the limit
	direct   counter // of messages to this member alone
	gaps     []gap   // the last ones that are no longer retained
}

// gap is a gap that is no longer retained, but still reported to subscribers.
type gap struct {
	number  uint64
	message Message
}

// maxGaps is how many of them are known. What the oldest ones count is added up beyond that.
const maxGaps = 16

// New makes an empty log. Messages have numbers, and an epoch: a log that is made again has
// another one.
func New(epoch string, l Limits) *Log {
	if l.Topics == 0 {
		l.Topics = 4096
	}
	return &Log{limits: l, epochs: []Epoch{{epoch, 1}}, first: 1, topics: make(map[string]*counter)}
}

// Add retains a message, and drops the oldest ones beyond the limits. The log keeps a copy
// of the data: what the group delivers may be a part of something longer.
func (l *Log) Add(m Message) {
	m.Data = slices.Clone(m.Data)
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Gap == "" {
		m.counter = l.counterOf(m.Topic, m.Direct, true)
		m.counter.added++
		m.ordinal = m.counter.added
	}
	l.retained.Push(m)
	l.bytes += sizeOf(&m)
	for l.retained.Len() > l.limits.Messages || l.bytes > l.limits.Bytes {
		l.drop()
	}
	l.added.Notify()
}

func (l *Log) drop() {
	m := l.retained.Pop()
	l.bytes -= sizeOf(&m)
	l.first++
	if m.counter != nil {
		m.counter.dropped++
		return
	}
	l.gaps = append(l.gaps, gap{l.first - 1, m})
	if len(l.gaps) > maxGaps {
		l.gaps[1].message.Missing += l.gaps[0].message.Missing
		l.gaps = slices.Delete(l.gaps, 0, 1)
	}
}

func sizeOf(m *Message) int {
	size := len(m.Data) + len(m.Topic) + overhead
	for key, value := range m.Header {
		size += len(key) + len(value) + pairOverhead
	}
	return size
}

// pairOverhead is the approximate memory of a pair of a header without its bytes.
const pairOverhead = 48

// counterOf returns the counter of a topic. A topic that has none shares one.
func (l *Log) counterOf(topic string, direct, add bool) *counter {
	switch c := l.topics[topic]; {
	case direct:
		return &l.direct
	case c != nil:
		return c
	case add && len(l.topics) < l.limits.Topics:
		c = new(counter)
		l.topics[topic] = c
		return c
	case len(l.topics) < l.limits.Topics:
		return new(counter) // it has had no message yet
	}
	return &l.others
}

// Retained counts the messages that are retained, and their bytes.
func (l *Log) Retained() (messages, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.retained.Len(), l.bytes
}

// next is the number of the next message, within l.mu.
func (l *Log) next() uint64 { return l.first + uint64(l.retained.Len()) }
