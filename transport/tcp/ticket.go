package tcp

import "github.com/pleach-go/pleach/transport"

// Handlers are told about one peer in the order in which things happened to it:
// the Down of one connection comes before the Up of the next, although different
// goroutines know of them. A turn is a place in that order, taken under the
// peer's mutex when the thing happens.
type ticket struct {
	before <-chan struct{} // nil: nobody is.
	served chan struct{}
}

// takeTicket takes the next place. Called with mu held.
func (p *peer) takeTicket() ticket {
	t := ticket{before: p.last, served: make(chan struct{})}
	p.last = t.served
	return t
}

// wait waits until those before are done.
func (t ticket) wait() {
	if t.before != nil {
		<-t.before
	}
}

// done lets the next one have its turn.
func (t ticket) done() { close(t.served) }

// handle calls the handler, unless the transport is closing.
func (p *peer) handle(f func(transport.Handler)) {
	p.handlerMu.Lock()
	defer p.handlerMu.Unlock()
	if p.t.state.Load() == running {
		f(p.t.handler)
	}
}

// notifyDown tells of a loss or failure, and that there is room again if somebody
// waits for it.
func (p *peer) notifyDown(address string, cause error, full bool) {
	p.handle(func(h transport.Handler) { h.Down(p.rank, p.fail(address, cause)) })
	if full {
		p.notifyWritable()
	}
}

func (p *peer) notifyWritable() {
	p.handle(func(h transport.Handler) { h.Writable(p.rank) })
}
