package stream

import (
	"github.com/pleach-go/pleach/protocol"
)

// inbox holds messages until the program takes them: in the main queue, and in one for
// each subscription (topic.go). All queues share one limit, so a program that leaves any
// of them unread is slow.
type inbox struct {
	main     messageQueue
	topics   subscriptions
	waiting  int  // messages and notices in all queues
	bytes    int  // of them
	blocking bool // it was full, and credits are withheld
	refusing bool // it was full, and something was refused or not requested
	tooLong  struct {
		root protocol.Rank
		size int // of the first message that was longer than Config.MaxMessage; 0: none was
	}
}

// messageCost is what a message costs besides its bytes, so that empty ones are bounded
// too.
const messageCost = 64

// cost returns what a message counts in the inbox.
func (m *Message) cost() int { return len(m.Data) + len(m.Header) + messageCost }

// push adds a message to a queue.
func (b *inbox) push(q *messageQueue, m Message) {
	q.Push(m)
	b.waiting++
	b.bytes += m.cost()
}

// pushLoss adds a notice that messages are lost to every queue: of what topics they were
// is not known. The notice does not wait for the root's next message, which may never
// come. Consecutive losses are one notice.
func (b *inbox) pushLoss(root protocol.Rank, view, messages uint64) {
	notice := Message{Root: root, View: view, Lost: messages}
	b.pushNotice(&b.main, notice)
	for _, s := range b.topics.byID {
		b.pushNotice(&s.queue, notice)
		b.topics.arrived(s)
	}
}

func (b *inbox) pushNotice(q *messageQueue, notice Message) {
	if n := q.Len(); n > 0 {
		if last := q.At(n - 1); last.Lost > 0 && last.Root == notice.Root && last.View == notice.View {
			last.Lost += notice.Lost
			return
		}
	}
	b.push(q, notice)
}

// discard removes the first message of a queue.
func (b *inbox) discard(q *messageQueue) {
	b.waiting--
	b.bytes -= q.At(0).cost()
	q.Discard()
}
