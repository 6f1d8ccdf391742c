package stream

import "github.com/pleach-go/pleach/protocol"

// inbox holds messages until the program takes them.
type inbox struct {
	messages []Message
	bytes    int
	lost     map[protocol.Rank]uint64 // to be told with the root's next message
}

// messageCost is what a waiting message costs beside its bytes, so that empty
// ones are bounded too.
const messageCost = 64

func (b *inbox) add(root protocol.Rank, data []byte) {
	b.messages = append(b.messages, Message{Root: root, Data: data, Lost: b.lost[root]})
	delete(b.lost, root)
	b.bytes += len(data) + messageCost
}

func (b *inbox) lose(root protocol.Rank, segments uint64) {
	if b.lost == nil {
		b.lost = make(map[protocol.Rank]uint64)
	}
	b.lost[root] += segments
}

func (b *inbox) take() (Message, bool) {
	if len(b.messages) == 0 {
		return Message{}, false
	}
	message := b.messages[0]
	b.messages[0] = Message{}
	b.messages = b.messages[1:]
	b.bytes -= len(message.Data) + messageCost
	return message, true
}
