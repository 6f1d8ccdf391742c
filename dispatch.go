package pleach

import "github.com/pleach-go/pleach/protocol"

// dispatch calls the program's handler, if it has one, for messages that have
// arrived. It is called by whichever goroutine has received something, when that
// has been passed on: the message is in the program's hands without another
// goroutine having to be woken. One at a time calls the handler; what others
// bring meanwhile is left to it, so that order is kept.
func (g *Group) dispatch() {
	for g.pending.Load() && g.dispatching.CompareAndSwap(false, true) {
		g.pending.Store(false) // what is left is pending again after the step
		if g.restoreState() && g.node.Do(func(now protocol.Time) { g.prefetch(now) }) == nil {
			g.dispatched = g.prefetched.exchange(g.dispatched)
			for i := range g.dispatched {
				if m := &g.dispatched[i]; g.forProgram(m) {
					g.config.Handler(*m)
				}
			}
		}
		g.dispatching.Store(false)
	}
}
