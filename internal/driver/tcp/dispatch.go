package tcp

// The program is called on the goroutine that has received its messages: another one would
// have to be woken first, which takes longer than most calls. A call that takes long must not
// keep that goroutine from the peer's next frames, heartbeats among them: the peer would seem
// to be unresponsive. So a goroutine takes the place of one that does not come back. This is
// the leader/followers pattern (Schmidt et al. 2000), with followers that are made on demand.

import (
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/transport"
)

var _ transport.Dispatcher = (*Transport)(nil)

// longCall is how long a call of the program may take, at least, before another goroutine
// reads the connection. At most, it is twice as long.
const longCall = 10 * time.Millisecond

// turn is the number of the call of the program that the reader of a connection is in; 0: none.
type turn struct {
	call atomic.Uint64
	seen uint64 // The call when programs.check last looked.
}

// programs calls the program, and looks for calls that take long.
type programs struct {
	program transport.Program // nil: there is none.
	calls   atomic.Uint64
	checked uint64 // calls when check last looked.
	armed   atomic.Bool
	check   regular
}

// SetProgram implements [transport.Dispatcher].
func (t *Transport) SetProgram(p transport.Program) { t.programs.program = p }

func (p *programs) pending() bool { return p.program != nil && p.program.Pending() }

// dispatch calls the program. It reports whether another goroutine reads the connection
// meanwhile.
func (c *conn) dispatch() (replaced bool) {
	p := &c.peer.t.programs
	call := p.calls.Add(1)
	c.turn.call.Store(call)
	if !p.armed.Load() && p.armed.CompareAndSwap(false, true) {
		p.check.after(longCall, c.peer.t.replaceReaders)
	}
	p.program.Dispatch()
	return !c.turn.call.CompareAndSwap(call, 0)
}

// replaceReaders replaces the readers that are in the same call as the last time. It looks
// again as long as there are calls.
func (t *Transport) replaceReaders() {
	p, busy := &t.programs, false
	for peer := range t.peers.all() {
		peer.mu.Lock()
		conns := [...]*conn{peer.conn, peer.retiring}
		peer.mu.Unlock()
		for _, c := range conns {
			busy = c != nil && c.replaceReader() || busy
		}
	}
	calls := p.calls.Load()
	if !busy && calls == p.checked {
		p.armed.Store(false)
		if p.calls.Load() == calls || !p.armed.CompareAndSwap(false, true) {
			return
		}
	}
	p.checked = calls
	p.check.after(longCall, t.replaceReaders)
}

// replaceReader replaces the reader if it is in the same call as the last time. It reports
// whether the reader is in a call.
func (c *conn) replaceReader() bool {
	call := c.turn.call.Load()
	if call != 0 && call == c.turn.seen && c.turn.call.CompareAndSwap(call, 0) {
		c.peer.t.wg.Go(c.serveFrames)
		return false
	}
	c.turn.seen = call
	return call != 0
}
