package pleach

import (
	"sync"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/stream"
)

// prefetched are messages that were taken from the member and wait to be yielded: taking
// each alone would spend more on the member's lock than on the message.
type prefetched struct {
	mu       sync.Mutex
	messages []Message
	yielded  int // of them

	// drained says that the member had no more: those who receive wait for the next step that
	// brings a message, which prefetches it for them. It is set within node.Do.
	drained atomic.Bool
}

// prefetchCount is how many messages of each sort are taken at a time.
const prefetchCount = 128

// next returns the next of the messages taken.
func (p *prefetched) next() (Message, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.yielded == len(p.messages) {
		return Message{}, false
	}
	m := p.messages[p.yielded]
	p.messages[p.yielded] = Message{}
	p.yielded++
	return m, true
}

// exchange returns all of the messages taken, and keeps the memory of others, which were
// yielded, for the next ones.
func (p *prefetched) exchange(yielded []Message) []Message {
	clear(yielded)
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := p.messages[p.yielded:]
	p.messages, p.yielded = yielded[:0], 0
	return rest
}

// fill takes messages, unless some are left, and reports whether there are any. It is
// called within node.Do.
func (p *prefetched) fill(take func(*prefetched)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.yielded < len(p.messages) {
		return true // another goroutine has taken them
	}
	p.messages, p.yielded = p.messages[:0], 0
	take(p)
	return len(p.messages) > 0
}

// extend takes messages behind those that are left, so many that there are prefetchCount at
// most. It is called within node.Do.
func (p *prefetched) extend(take func(p *prefetched, most int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	take(p, prefetchCount-len(p.messages))
}

// add adds a message of the member. It is called by what fill calls.
func (p *prefetched) add(m *stream.Message) {
	p.messages = append(p.messages, Message{From: int(m.Root), Data: m.Data, View: m.View, Topic: m.Topic, Lost: m.Lost, begins: m.Begins, lease: m.Lease})
}

// drop drops what is left.
func (p *prefetched) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages, p.yielded = nil, 0
}
