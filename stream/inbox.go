package stream

import "github.com/pleach-go/pleach/protocol"

// inbox holds messages until the program takes them.
type inbox struct {
	messages deque[Message]
	bytes    int
	refusing bool                     // it was full, and something was refused or not asked for
	fullAt   protocol.Time            // when it became full; 0: it is not, or has room again
	lost     map[protocol.Rank]uint64 // to be told with the root's next message
}

// messageCost is what a waiting message costs beside its bytes, so that empty
// ones are bounded too.
const messageCost = 64

// weigh notes whether it is full. It has room again when a quarter of it is free.
func (b *inbox) weigh(now protocol.Time, limit int) {
	switch {
	case b.bytes > limit && b.fullAt == 0:
		b.fullAt = now
	case b.bytes <= limit-limit/4:
		b.fullAt = 0
	}
}

func (b *inbox) add(m Message) {
	if len(b.lost) > 0 {
		m.Lost = b.lost[m.Root]
		delete(b.lost, m.Root)
	}
	b.messages.push(m)
	b.bytes += len(m.Data) + messageCost
}

func (b *inbox) lose(root protocol.Rank, segments uint64) {
	if b.lost == nil {
		b.lost = make(map[protocol.Rank]uint64)
	}
	b.lost[root] += segments
}

func (b *inbox) take() (Message, bool) {
	if b.messages.len() == 0 {
		return Message{}, false
	}
	message := b.messages.pop()
	b.bytes -= len(message.Data) + messageCost
	return message, true
}
