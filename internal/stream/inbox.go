package stream

import (
	"github.com/pleach-go/pleach/internal/queue"
	"github.com/pleach-go/pleach/protocol"
)

// inbox holds messages until the program takes them.
type inbox struct {
	messages queue.Queue[Message]
	bytes    int
	refusing bool          // it was full, and something was refused or not requested
	fullAt   protocol.Time // when it became full; 0 if it is not, or has room again
}

// messageCost is what a message costs besides its bytes, so that empty ones are bounded
// too.
const messageCost = 64

// updateFull records whether the inbox is full. Once full, it has room again when a
// quarter is free.
func (b *inbox) updateFull(now protocol.Time, limit int) {
	switch {
	case b.bytes > limit && b.fullAt == 0:
		b.fullAt = now
	case b.bytes <= limit-limit/4:
		b.fullAt = 0
	}
}

func (b *inbox) push(m Message) {
	b.messages.Push(m)
	b.bytes += len(m.Data) + messageCost
}

// pushLoss adds a notice that segments are lost. The notice does not wait for the
// root's next message, which may never come. Consecutive losses are one notice.
func (b *inbox) pushLoss(root protocol.Rank, view, segments uint64) {
	if n := b.messages.Len(); n > 0 {
		if last := b.messages.At(n - 1); last.Lost > 0 && last.Root == root && last.View == view {
			last.Lost += segments
			return
		}
	}
	b.push(Message{Root: root, View: view, Lost: segments})
}

func (b *inbox) pop() (Message, bool) {
	if b.messages.Len() == 0 {
		return Message{}, false
	}
	message := b.messages.Pop()
	b.bytes -= len(message.Data) + messageCost
	return message, true
}
