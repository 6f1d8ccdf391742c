package tcp

import "github.com/pleach-go/pleach/transport"

// Handlers are told about one peer in the order in which things happened to it:
// the Down of one connection comes before the Up of the next, although different
// goroutines know of them. A turn is a place in that order, taken under the
// peer's mutex when the thing happens.
type turn struct {
	before <-chan struct{} // nil: nobody is.
	over   chan struct{}
}

// takeTurn takes the next place. Called with mu held.
func (p *peer) takeTurn() turn {
	t := turn{before: p.last, over: make(chan struct{})}
	p.last = t.over
	return t
}

// wait waits until those before are done.
func (t turn) wait() {
	if t.before != nil {
		<-t.before
	}
}

// done lets the next one have its turn.
func (t turn) done() { close(t.over) }

// handle calls the handler, unless the transport is closing.
func (p *peer) handle(f func(transport.Handler)) {
	p.tell.Lock()
	defer p.tell.Unlock()
	if p.t.state.Load() == running {
		f(p.t.handler)
	}
}

// tellDown tells of a loss or failure, and that there is room again if somebody
// waits for it.
func (p *peer) tellDown(address string, cause error, full bool) {
	p.handle(func(h transport.Handler) { h.Down(p.rank, p.fail(address, cause)) })
	if full {
		p.tellRoom()
	}
}

func (p *peer) tellRoom() {
	p.handle(func(h transport.Handler) { h.Writable(p.rank) })
}
