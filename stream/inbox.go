package stream

import "github.com/pleach-go/pleach/protocol"

// inbox holds messages until the program takes them.
type inbox struct {
	messages deque[Message]
	bytes    int
	refusing bool          // it was full, and something was refused or not asked for
	fullAt   protocol.Time // when it became full; 0: it is not, or has room again
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
	b.messages.push(m)
	b.bytes += len(m.Data) + messageCost
}

// lose adds a notice that segments are lost. It does not wait for the root's next
// message, which may never come. Losses in a row are one notice.
func (b *inbox) lose(root protocol.Rank, view, segments uint64) {
	if n := b.messages.len(); n > 0 {
		if last := b.messages.at(n - 1); last.Lost > 0 && last.Root == root && last.View == view {
			last.Lost += segments
			return
		}
	}
	b.add(Message{Root: root, View: view, Lost: segments})
}

func (b *inbox) take() (Message, bool) {
	if b.messages.len() == 0 {
		return Message{}, false
	}
	message := b.messages.pop()
	b.bytes -= len(message.Data) + messageCost
	return message, true
}
