package tcp

import "github.com/pleach-go/pleach/transport"

// A ticket is a place in the order of notifications about one peer: the Down of one
// connection comes before the Up of the next, although different goroutines notify
// the handler. It is taken under the peer's mutex when the event happens.
type ticket struct {
	before <-chan struct{} // nil: this is the first.
	served chan struct{}
}

// takeTicket takes the next ticket. The caller holds mu.
func (p *peer) takeTicket() ticket {
	t := ticket{before: p.last, served: make(chan struct{})}
	p.last = t.served
	return t
}

// wait waits until the tickets before are done.
func (t ticket) wait() {
	if t.before != nil {
		<-t.before
	}
}

// done lets the next ticket proceed.
func (t ticket) done() { close(t.served) }

// handle calls the handler, unless the transport is closing.
func (p *peer) handle(f func(transport.Handler)) {
	p.handlerMu.Lock()
	defer p.handlerMu.Unlock()
	if p.t.state.Load() == running {
		f(p.t.handler)
	}
}

// notifyDown reports a lost connection or a failed dial, and then that the queue is
// writable again if a Send has failed on it.
func (p *peer) notifyDown(address string, cause error, full bool) {
	p.handle(func(h transport.Handler) { h.Down(p.rank, p.fail(address, cause)) })
	if full {
		p.notifyWritable()
	}
}

func (p *peer) notifyWritable() {
	p.handle(func(h transport.Handler) { h.Writable(p.rank) })
}
