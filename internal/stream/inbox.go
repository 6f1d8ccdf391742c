package stream

import (
	"github.com/pleach-go/pleach/internal/queue"
	"github.com/pleach-go/pleach/protocol"
)

// inbox holds messages until the program takes them.
type inbox struct {
	messages queue.Queue[Message]
	bytes    int
	blocking bool // it was full, and credits are withheld
	refusing bool // it was full, and something was refused or not requested
}

// messageCost is what a message costs besides its bytes, so that empty ones are bounded
// too.
const messageCost = 64

func (b *inbox) push(m Message) {
	b.messages.Push(m)
	b.bytes += len(m.Data) + messageCost
}

// pushLoss adds a notice that messages are lost. The notice does not wait for the
// root's next message, which may never come. Consecutive losses are one notice.
func (b *inbox) pushLoss(root protocol.Rank, view, messages uint64) {
	if n := b.messages.Len(); n > 0 {
		if last := b.messages.At(n - 1); last.Lost > 0 && last.Root == root && last.View == view {
			last.Lost += messages
			return
		}
	}
	b.push(Message{Root: root, View: view, Lost: messages})
}

func (b *inbox) pop() (Message, bool) {
	if b.messages.Len() == 0 {
		return Message{}, false
	}
	message := b.messages.Pop()
	b.bytes -= len(message.Data) + messageCost
	return message, true
}
