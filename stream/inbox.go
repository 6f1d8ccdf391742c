package stream

import "github.com/pleach-go/pleach/protocol"

// inbox holds messages until the program takes them.
type inbox struct {
	messages deque[Message]
	bytes    int
	refusing bool                     // it was full, and something was refused or not asked for
	lost     map[protocol.Rank]uint64 // to be told with the root's next message
}

// messageCost is what a waiting message costs beside its bytes, so that empty
// ones are bounded too.
const messageCost = 64

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
