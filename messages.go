package pleach

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/driver/prefetch"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// Message is a broadcast of another member, or a message of one to this member alone.
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

	lease *stream.Lease
}

// LostError takes the place of messages of one member that this process lost, because it was cut
// off or slow for longer than the others keep messages (Config.Limits.KeepBytes). It comes after
// all messages that the member sent before them, as soon as the loss is certain, and before all
// later ones. The topics of lost messages are unknown, so [Group.Messages] and every subscription
// yield it. The loop continues.
type LostError struct {
	// From is the rank of the member that broadcast the messages.
	From int
	// View is the number of the view in which they were broadcast.
	View uint64
	// Count is the number of lost messages, of every topic. While it is unknown, Count is at least
	// one, and a second LostError counts the others when the next message arrives. If this process
	// has received nothing from the member since it joined, Count stays a lower bound.
	Count uint64
}

func (e *LostError) Error() string {
	return fmt.Sprintf("pleach: lost %d messages of rank %d in view %d", e.Count, e.From, e.View)
}

// GapError takes the place of all messages that this process may have missed between two of its
// memberships (Config.Recovery.Rejoin, [Group.Rejoin]). It comes after all messages of the old membership and
// before all of the new one: once from [Group.Messages] or Config.OnMessage, and once from every
// subscription. A [State] is restored after it. The loop continues.
type GapError struct {
	// From is the last view of the old membership, and To the first of the new one. Messages of
	// From and of the views between may be missing; no message of To is.
	From, To uint64
	// Err is the error that ended the old membership: an [*EvictedError], or [ErrTooSlow].
	Err error
}

func (e *GapError) Error() string {
	return fmt.Sprintf("pleach: messages of views %d to %d may be missing: %v", e.From, e.To-1, e.Err)
}

// Unwrap returns the error that ended the old membership.
func (e *GapError) Unwrap() error { return e.Err }

// item is an element of a queue for the program: a message, or a marker among the messages.
type item struct {
	Message            // of a marker: From and View
	lost     uint64    // > 0: a marker, for a LostError
	gap      *GapError // not nil: a marker
	begins   bool      // a marker: View begins here
	current  bool      // a marker: the program is current here
	position uint64    // in the queue that it was taken from, if that is of the stream; see progress
}

// result returns the message, or the error that takes the place of messages.
func (i *item) result() (Message, error) {
	switch {
	case i.gap != nil:
		return Message{}, i.gap
	case i.lost > 0:
		return Message{}, &LostError{From: i.From, View: i.View, Count: i.lost}
	}
	return i.Message, nil
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

// Messages yields the broadcasts of other members without a topic, and messages by [Group.Send] to
// this one: each message once, and both kinds in the order in which their sender made them. Messages
// with a topic are for [Subscription.Messages]. If several goroutines receive, each message goes to
// one of them.
//
//	for m, err := range group.Messages(ctx) {
//		if err != nil { // messages are missing here
//			reload()
//			continue
//		}
//		apply(m)
//	}
//	return group.Err()
//
// An error is a [*LostError] or a [*GapError], at the place of messages that are missing, and the
// Message is zero then. Neither ends the loop. It ends without an error when ctx ends or this process
// is no longer a member: [Group.Err] returns the reason. With Config.Recovery.Rejoin, it continues when the
// process is a member again.
//
// Up to Config.Limits.InboxBytes wait for the caller. Beyond that, messages stay
// with other members, and arrive later unless those no longer keep them.
func (g *Group) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		g.delivery.progress.Resume()
		for ctx.Err() == nil {
			s := g.session()
			i, err := s.next(ctx)
			switch {
			case err != nil && !g.goesOn(ctx, s, &s.prefetched, nil):
				return
			case err != nil:
			case !yield(i.result()):
				g.delivery.progress.leave(&i)
				g.session().notePast(&i)
				return
			default:
				g.delivery.progress.done(&i)
				g.session().notePast(&i)
				g.session().noteProcessed()
			}
		}
	}
}

// next returns the next message, or marker for an error, as soon as there is one.
func (g *session) next(ctx context.Context) (item, error) {
	for {
		if i, ok := g.prefetched.Next(); ok {
			if g.forProgram(&i) {
				g.received.Add(1)
				return i, nil
			}
			g.progress.done(&i)
			g.noteProcessed()
			continue
		}
		if g.restoreState(); !g.prefetched.Empty() {
			continue // another goroutine has taken them
		}
		if err := g.receive(ctx, &g.prefetched, g.arrived, g.prefetch); err != nil {
			return item{}, err
		}
	}
}

// receive takes messages from the member, or waits until there may be some to yield.
func (g *session) receive(ctx context.Context, p *prefetched, arrived <-chan struct{}, take func(now protocol.Time) bool) error {
	if p.Drained.Load() {
		return g.await(ctx, arrived)
	}
	return g.sender.wait(ctx, arrived, take)
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
			i, ok := g.direct.deliverDirect()
			if !ok {
				break
			}
			g.prefetched.Add(i)
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
	return g.stream.Pending() > 0 || g.direct.channel != nil && g.direct.channel.Pending() > 0
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
	dispatched                 []item // handed to the handler last, used while dispatching
}

// progress is how far the program has processed the messages of a queue.
type progress struct{ prefetch.Progress }

// done records that the program has processed a message.
func (p *progress) done(i *item) {
	p.Done(prefetch.Mark{View: i.View, Position: i.position})
}

// leave records that a loop was left with a message.
func (p *progress) leave(i *item) {
	p.Leave(prefetch.Mark{View: i.View, Position: i.position})
}

// notePast notes that the program has got a GapError: View.Err was set until then. A state comes
// after it.
func (g *session) notePast(i *item) {
	if i.gap != nil && g.config.State == nil {
		g.progress.Complete(i.View)
		g.changed.Notify()
	}
}

// prefetched are messages that wait for the program.
type prefetched struct{ prefetch.Queue[item] }

// add adds a message of the member.
func (p *prefetched) add(m *stream.Message) {
	p.Add(item{
		Message: Message{From: int(m.Root), Data: m.Data, View: m.View, Topic: m.Topic, lease: m.Lease},
		lost:    m.Lost, begins: m.Begins, position: m.Position,
	})
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
				if it := &g.dispatched[i]; g.forProgram(it) {
					g.config.OnMessage(it.result())
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
// an earlier membership, and the GapError, come before it.
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
