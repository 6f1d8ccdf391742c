package pleach

import (
	"cmp"
	"context"
	"iter"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/driver/prefetch"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// Message is a broadcast of another member, what a member has sent to this one alone, or a
// notice that broadcasts were lost.
type Message struct {
	// From is the rank of the member that broadcast or sent it.
	From int
	// Data must not be changed: the group may still relay it.
	Data []byte
	// View is the number of the view in which it was broadcast. Every member that
	// continues from that view to the next has received it, or none has. If Direct is
	// true, it is the view of this process when the message arrived.
	View uint64
	// Direct says that the message was sent to this process alone, by [Group.Send].
	Direct bool
	// Topic is the topic that the message was broadcast to ([Group.Subscribe]). If empty, none.
	Topic string
	// Lost is 0 in a message. Otherwise this is a notice, and Data is nil: messages
	// of this member, sent after those that have arrived, are lost, because this
	// process was cut off or slow for longer than the others keep them
	// (Config.Limits.KeepBytes). Lost counts them. The notice arrives as soon as the
	// loss is certain, and before later messages. If it is not known yet how many are
	// lost, the notice counts at least one, and a second notice the others when the
	// next message arrives. Only of a sender that this process has received nothing
	// from since it joined, the count stays a lower bound. It is not known which topics
	// the lost messages have, so Lost counts those of every topic, and Messages yields the
	// notice as well as every subscription.
	Lost uint64
	// Gap is nil in a message. Otherwise this is a notice, Data is nil and From is -1: this
	// process was no member for a while, and has joined again (Config.Recovery.Rejoin,
	// [Group.Rejoin]). It comes after all that was received in the old membership, and
	// before all of the new one: from Messages and from every subscription, or once to
	// Config.OnMessage. A [State] is restored after it.
	Gap *Gap
	// Begins is nil in a message. Otherwise this is a notice, Data is nil and From is -1: a
	// view begins here, after all messages of the views before. Only Config.OnMessage gets
	// it, with Config.ViewNotices, and first of all for the first view of a membership.
	Begins *View
	// Current makes this a notice: Data is nil and From is -1. The program is current here: it has
	// got the notice of a gap, if there was one, and its [State] is restored, if it has one, and
	// every message of View and of later ones follows. It is the first thing of each membership
	// with Config.CurrentNotices, also of those that begin a group: from Messages and from every
	// subscription, or once to Config.OnMessage.
	Current bool

	position uint64 // in the queue that it was taken from, if it is of the stream; see processed.go
	begins   bool   // no message: a view begins here; see state.go
	lease    *stream.Lease
}

// Release says that the program has done with a message: the group may receive another one
// into the memory of its Data, which the program must not read any more. No message has to
// be released. For a program that receives many long messages, it saves the making and the
// clearing of memory.
func (g *Group) Release(m Message) {
	if s := g.session(); m.lease != nil {
		s.node.Look(func() { s.stream.Release(m.lease) })
	}
}

// Messages yields what other members broadcast without a topic, and what they send to
// this one: each message once, the broadcasts of one member in the order in which it made
// them, and what it has sent in that order. What has a topic is for [Subscription.Messages]. It
// ends when ctx ends or this process is no longer a member ([Group.Err] says why); with
// Config.Recovery.Rejoin, it goes on when the process is a member again. If
// several goroutines receive, each message goes to one of them.
//
// Up to Config.Limits.InboxBytes wait for the caller. Beyond that, messages stay
// with other members, and arrive later unless those no longer keep them.
func (g *Group) Messages(ctx context.Context) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		g.delivery.progress.Resume()
		for ctx.Err() == nil {
			s := g.session()
			m, err := s.next(ctx)
			switch {
			case err != nil && !g.goesOn(ctx, s, &s.prefetched, nil):
				return
			case err != nil:
			case !yield(m):
				g.delivery.progress.leave(&m)
				g.session().notePast(&m)
				return
			default:
				g.delivery.progress.done(&m)
				g.session().notePast(&m)
				g.session().noteProcessed()
			}
		}
	}
}

// next returns the next message, as soon as there is one.
func (g *session) next(ctx context.Context) (Message, error) {
	for {
		if m, ok := g.prefetched.Next(); ok {
			if g.forProgram(&m) {
				g.received.Add(1)
				return m, nil
			}
			g.progress.done(&m)
			g.noteProcessed()
			continue
		}
		if g.restoreState(); !g.prefetched.Empty() {
			continue // another goroutine has taken them
		}
		if err := g.receive(ctx, &g.prefetched, g.arrived, g.prefetch); err != nil {
			return Message{}, err
		}
	}
}

// receive takes messages from the member, or waits until there may be some to yield.
func (g *session) receive(ctx context.Context, p *prefetched, arrived <-chan struct{}, take func(now protocol.Time) bool) error {
	if p.Drained.Load() {
		return g.await(ctx, arrived)
	}
	return g.wait(ctx, arrived, take)
}

// prefetch takes messages from the member. It reports false if there are none, and a step
// that brings some will not prefetch them.
func (g *session) prefetch(now protocol.Time) bool {
	if g.replica.lacking {
		return g.replica.arrived != nil || g.replica.offering
	}
	filled := g.prefetched.Fill(func() {
		g.machine.DeliverEach(now, prefetch.Count, g.prefetched.add)
		for range prefetch.Count {
			m, ok := g.deliverDirect()
			if !ok {
				break
			}
			g.prefetched.Add(m)
		}
	})
	drained := g.config.State == nil && !g.deliverable()
	g.prefetched.Drained.Store(drained)
	return filled || drained
}

// handOver gives a sign to those who receive. If they wait, it takes messages for them
// within the step that has brought them, which saves steps of their own. It leaves messages
// if to take them may make the member send something: the step has sent its frames already.
func (g *session) handOver(now protocol.Time) {
	if p := &g.prefetched; p.Drained.Load() {
		if !g.stream.Withholding() {
			p.Fill(func() { g.machine.DeliverEach(now, prefetch.Count, p.add) })
		}
		p.Drained.Store(!g.deliverable())
	}
	notify.Signal(g.arrived)
}

// deliverable reports whether something waits for the program. While the program lacks the
// state, that is only the state.
func (g *session) deliverable() bool {
	if g.replica.lacking {
		return g.replica.arrived != nil || g.replica.offering
	}
	return g.stream.Pending() > 0 || g.direct.machine != nil && g.direct.machine.Pending() > 0
}

// delivery is how messages come to the program, over all memberships of its process.
type delivery struct {
	arrived    chan struct{} // there may be a message
	prefetched prefetched    // for Messages to yield
	progress   progress      // of those that Messages has yielded, or OnMessage got
	received   atomic.Uint64 // messages that the program has got, in whatever way
	noted      uint64        // those that the machine knows of
	// See dispatch. left says that a step has not prefetched all.
	pending, dispatching, left atomic.Bool
	dispatched                 []Message // handed to the handler last, used while dispatching
}

// progress is how far the program has processed the messages of a queue.
type progress struct{ prefetch.Progress }

// done records that the program has processed a message.
func (p *progress) done(m *Message) {
	p.Done(prefetch.Mark{View: m.View, Position: m.position})
}

// leave records that a loop was left with a message.
func (p *progress) leave(m *Message) {
	p.Leave(prefetch.Mark{View: m.View, Position: m.position})
}

// notePast notes that the program has got the notice of a gap: View.Err was set until then. A state
// comes after it.
func (g *session) notePast(m *Message) {
	if m.Gap != nil && g.config.State == nil {
		g.progress.Complete(m.View)
		g.changed.Notify()
	}
}

// prefetched are messages that wait for the program.
type prefetched struct{ prefetch.Queue[Message] }

// add adds a message of the member.
func (p *prefetched) add(m *stream.Message) {
	p.Add(Message{From: int(m.Root), Data: m.Data, View: m.View, Topic: m.Topic, Lost: m.Lost, position: m.Position, begins: m.Begins, lease: m.Lease})
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
					g.config.OnMessage(*m)
					g.received.Add(1)
				}
				g.progress.done(&g.dispatched[i])
				s := cmp.Or(g.group.session(), g) // none yet: this membership is just beginning
				s.notePast(&g.dispatched[i])
				s.noteProcessed()
			}
		}
		g.dispatching.Store(false)
	}
}

// program is the program's handler, as the goroutines see it that receive frames.
type program struct{ g *session }

// Pending implements [transport.Program].
func (p program) Pending() bool { return p.g.pending.Load() && !p.g.dispatching.Load() }

// Dispatch implements [transport.Program].
func (p program) Dispatch() { p.g.dispatch() }

// dispatchOwn calls the program's handler for messages of this process, which no event of the
// transport brings.
func (g *session) dispatchOwn() {
	if (g.config.Delivery.Echo || g.config.State != nil) && g.config.OnMessage != nil {
		g.dispatch()
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
		g.prefetched.Extend(func(most int) { g.machine.DeliverEach(now, most, g.prefetched.add) })
	}
	g.left.Store(g.deliverable())
	g.pending.Store(true)
}
