package prefetch

import "sync"

// Mark names a message that was taken from a queue of the member: the view in which it was
// delivered, and its position in the queue. One that is in none has position 0.
type Mark struct{ View, Position uint64 }

// Progress is how far the program has processed the messages of a queue in the present membership.
// The zero value is that of a first membership.
type Progress struct {
	mu      sync.Mutex
	first   uint64              // view of the membership: earlier messages are of the one before
	upTo    uint64              // all up to this position are processed
	ahead   map[uint64]struct{} // positions that other goroutines have processed before those between
	left    []Mark              // the last messages of loops that were left
	used    bool                // the program receives from the queue
	missing bool                // see Begin
}

// Begin begins a membership with a view. Missing: the program still has to get a gap event or a
// state before messages; handler: a handler takes the messages.
func (p *Progress) Begin(view uint64, missing, handler bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first, p.upTo, p.ahead, p.left, p.missing = view, 0, nil, nil, missing
	p.used = p.used || handler
}

// Complete says that the program has got what was missing in the membership that began with a view.
func (p *Progress) Complete(view uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if view == p.first {
		p.missing = false
	}
}

// Misses reports whether something is missing.
func (p *Progress) Misses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missing
}

// Waits reports whether something is missing in a queue that the program receives from.
func (p *Progress) Waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missing && p.used
}

// Done records that the program has processed a message.
func (p *Progress) Done(m Mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(m)
}

func (p *Progress) add(m Mark) {
	switch {
	case m.Position == 0 || m.View < p.first:
	case m.Position > p.upTo+1:
		if p.ahead == nil {
			p.ahead = make(map[uint64]struct{})
		}
		p.ahead[m.Position] = struct{}{}
	case m.Position == p.upTo+1:
		for p.upTo++; len(p.ahead) > 0; p.upTo++ {
			if _, is := p.ahead[p.upTo+1]; !is {
				break
			}
			delete(p.ahead, p.upTo+1)
		}
	}
}

// Leave records that a loop was left with a message.
func (p *Progress) Leave(m Mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = append(p.left, m)
}

// Resume records that a loop has begun: the messages of those that were left are processed.
func (p *Progress) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = true
	for _, m := range p.left {
		p.add(m)
	}
	p.left = nil
}

// Position returns the position up to which all is processed.
func (p *Progress) Position() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upTo
}
