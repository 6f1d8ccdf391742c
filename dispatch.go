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
		if g.restoreState() && g.fetch() {
			for i := range g.dispatched {
				if m := &g.dispatched[i]; g.forProgram(m) {
					g.config.Handler(*m)
				}
			}
		}
		g.dispatching.Store(false)
	}
}

// fetch takes messages for the handler: those that a step has prefetched or, if there are
// none, those that wait. It returns false if the group is closed.
func (g *Group) fetch() bool {
	if g.dispatched = g.prefetched.exchange(g.dispatched); len(g.dispatched) > 0 {
		if g.left.Load() {
			g.pending.Store(true)
		}
		return true
	}
	if g.node.Do(func(now protocol.Time) { g.prefetch(now) }) != nil {
		return false
	}
	g.dispatched = g.prefetched.exchange(g.dispatched)
	return true
}

// prefetchInStep takes messages for the handler within the step that has brought them, which
// saves a step of their own. It leaves them if the handler is still busy with others, and if
// to take them may make the member send something: the step has sent its frames already.
func (g *Group) prefetchInStep(now protocol.Time) {
	if g.config.State == nil && !g.dispatching.Load() && !g.stream.Withholding() {
		g.prefetched.extend(func(p *prefetched, most int) { g.inputs.DeliverEach(now, most, p.add) })
	}
	g.left.Store(g.deliverable())
	g.pending.Store(true)
}
