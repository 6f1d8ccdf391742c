package pleach

import "sync"

// prefetched are messages that were taken from the member and wait to be yielded: taking
// each alone would spend more on the member's lock than on the message.
type prefetched struct {
	mu       sync.Mutex
	messages []Message
	yielded  int // of them
}

// prefetchCount is how many messages of each sort are taken at a time.
const prefetchCount = 64

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

// fill takes messages of each sort, unless some are left, and reports whether there are
// any. It is called within node.Do.
func (p *prefetched) fill(sorts ...func() (Message, bool)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.yielded < len(p.messages) {
		return true // another goroutine has taken them
	}
	p.messages, p.yielded = p.messages[:0], 0
	for _, take := range sorts {
		for range prefetchCount {
			m, ok := take()
			if !ok {
				break
			}
			p.messages = append(p.messages, m)
		}
	}
	return len(p.messages) > 0
}

// drop drops what is left.
func (p *prefetched) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages, p.yielded = nil, 0
}
