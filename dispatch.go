package pleach

import (
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/prefetch"
	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
)

// delivery is how messages come to the program, over all memberships of its process.
type delivery struct {
	arrived    chan struct{} // there may be a message
	prefetched prefetched    // for Messages to yield
	// See dispatch. left says that a step has not prefetched all.
	pending, dispatching, left atomic.Bool
	dispatched                 []Message // handed to the handler last, used while dispatching
}

// prefetched are messages that wait for the program.
type prefetched struct{ prefetch.Queue[Message] }

// add adds a message of the member.
func (p *prefetched) add(m *stream.Message) {
	p.Add(Message{From: int(m.Root), Data: m.Data, View: m.View, Topic: m.Topic, Lost: m.Lost, begins: m.Begins, lease: m.Lease})
}

// dispatch calls the program's handler, if it has one, for messages that have
// arrived. It is called by whichever goroutine has received something, when that
// has been passed on: the message is in the program's hands without another
// goroutine having to be woken. One at a time calls the handler; what others
// bring meanwhile is left to it, so that order is kept.
func (g *session) dispatch() {
	for g.pending.Load() && g.dispatching.CompareAndSwap(false, true) {
		g.pending.Store(false) // what is left is pending again after the step
		if g.readyToDispatch() && g.fetch() {
			for i := range g.dispatched {
				if m := &g.dispatched[i]; g.forProgram(m) {
					g.config.Handler(*m)
				}
			}
		}
		g.dispatching.Store(false)
	}
}

// readyToDispatch reports whether the program has the state, if there is one. What is left of
// an earlier membership, and the notice of the gap, come before it.
func (g *session) readyToDispatch() bool {
	if g.config.State != nil && !g.prefetched.Empty() {
		g.pending.Store(true) // for what follows
		return true
	}
	return g.restoreState()
}

// fetch takes messages for the handler: those that a step has prefetched or, if there are
// none, those that wait. It returns false if the group is closed.
func (g *session) fetch() bool {
	if g.dispatched = g.prefetched.Exchange(g.dispatched); len(g.dispatched) > 0 {
		if g.left.Load() {
			g.pending.Store(true)
		}
		return true
	}
	if g.node.Do(func(now protocol.Time) { g.prefetch(now) }) != nil {
		return false
	}
	g.dispatched = g.prefetched.Exchange(g.dispatched)
	return true
}

// prefetchInStep takes messages for the handler within the step that has brought them, which
// saves a step of their own. It leaves them if the handler is still busy with others, and if
// to take them may make the member send something: the step has sent its frames already.
func (g *session) prefetchInStep(now protocol.Time) {
	if g.config.State == nil && !g.dispatching.Load() && !g.stream.Withholding() {
		g.prefetched.Extend(func(most int) { g.inputs.DeliverEach(now, most, g.prefetched.add) })
	}
	g.left.Store(g.deliverable())
	g.pending.Store(true)
}
