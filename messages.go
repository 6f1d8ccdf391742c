package pleach

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/prefetch"
	"github.com/pleach-go/pleach/internal/machine/membership"
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
	// Header is what the context of its sender has ([WithHeader]). It is nil if there is none.
	Header Header

	lease *stream.Lease
}

// Header is pairs of a key and a value that a message or a request carries besides its data, for
// what is the same in all programs, such as the context of a trace. [WithHeader] sends one, and
// [Message.Header] and [Request.Header] are what has arrived.
//
// It has at most 32 keys ([MaxHeaderKeys]) of 1 to 128 lower-case letters, digits, "-", "_" and ".".
// Values are UTF-8 without control characters. Keys and values together, and three bytes for each
// pair, are at most 1024 bytes ([MaxHeaderBytes]).
type Header map[string]string

// Limits of a [Header].
const (
	MaxHeaderBytes = 1024
	MaxHeaderKeys  = 32
)

// HeaderVersion is the first protocol version of a group, 6, in which messages can have a header: see
// [View.Version].
const HeaderVersion = 6

// HeaderError means that a message was not sent because its [Header] is too large, or has a pair that
// is not allowed.
type HeaderError struct {
	// Key is the key of the pair. It is empty if the header as a whole is too large.
	Key string
	// Reason says what is wrong.
	Reason string
}

func (e *HeaderError) Error() string {
	if e.Key == "" {
		return "pleach: header: " + e.Reason
	}
	return fmt.Sprintf("pleach: header %.64q: %s", e.Key, e.Reason)
}

// Validate returns a [*HeaderError] if no message can have the header.
func (h Header) Validate() error {
	_, err := header.Encode(h)
	return headerErrorOf(err)
}

func headerErrorOf(err error) error {
	if flaw := new(header.Error); errors.As(err, &flaw) {
		return &HeaderError{flaw.Key, flaw.Reason}
	}
	return err
}

// WithHeader returns a context with which messages and requests are sent with a header: those of
// [Group.Broadcast], [Group.BroadcastTopic], [Subscription.Broadcast], [Group.BroadcastTraced],
// [Group.Send] and [Group.Request]. The pairs are added to those that ctx has already; of one key, the
// new value counts. A message without a header costs nothing more than before.
//
// A header that is too large, or not allowed, is a [*HeaderError] of the call that sends. In a group
// whose protocol version ([View.Version]) is below [HeaderVersion], the error is a [*VersionError]. A
// reply has no header. What a service on top of the group sends ignores the header of ctx, except
// that of package fleet.
//
// The context of a handler has no header, so that none is passed on unseen: a handler passes it on
// by WithHeader(ctx, r.Header).
func WithHeader(ctx context.Context, h Header) context.Context { return header.With(ctx, h) }

// HeaderOf returns the header that [WithHeader] has given to a context, for code between the program
// and the group. It is nil if there is none.
func HeaderOf(ctx context.Context) Header { return maps.Clone(header.Pairs(ctx)) }

// headerOf returns the header that ctx has, or why it cannot be sent in a view.
func headerOf(ctx context.Context, v *membership.View) (header.Encoded, error) {
	h, err := header.Of(ctx)
	if err != nil {
		return "", headerErrorOf(err)
	}
	if h != "" && v.Version < HeaderVersion {
		return "", &VersionError{"a message with a header", int(v.Version), HeaderVersion, int(wire.Newest())}
	}
	return h, nil
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
			i, err := s.receiver.next(ctx)
			switch {
			case err != nil && !g.goesOn(ctx, s, &s.receiver.prefetched, nil):
				return
			case err != nil:
			case !yield(i.result()):
				g.delivery.progress.leave(&i)
				g.session().receiver.notePast(&i)
				return
			default:
				g.delivery.progress.done(&i)
				g.session().receiver.notePast(&i)
				g.session().consumers.noteProcessed()
			}
		}
	}
}

// receiver brings messages of one membership to the program.
type receiver struct {
	*core
	*delivery
	group     *Group
	topics    map[uint64]*Subscription // the subscriptions, by their IDs; used within node.Do
	sender    *sender
	direct    *directs
	consumers *consumers
	replica   *replica
}

// next returns the next message, or marker for an error, as soon as there is one.
func (r *receiver) next(ctx context.Context) (item, error) {
	for {
		if i, ok := r.prefetched.Next(); ok {
			if r.replica.forProgram(&i) {
				r.received.Add(1)
				return i, nil
			}
			r.progress.done(&i)
			r.consumers.noteProcessed()
			continue
		}
		r.replica.restoreState()
		if !r.prefetched.Empty() {
			continue // another goroutine has taken them
		}
		if err := r.receive(ctx, &r.prefetched, r.arrived, r.prefetch); err != nil {
			return item{}, err
		}
	}
}

// receive takes messages from the member, or waits until there may be some to yield.
func (r *receiver) receive(ctx context.Context, p *prefetched, arrived <-chan struct{},
	take func(now protocol.Time) bool,
) error {
	if p.Drained.Load() {
		return r.await(ctx, arrived)
	}
	return r.sender.wait(ctx, arrived, take)
}

// prefetch takes messages from the member. It reports false if there are none, and a step
// that brings some will not prefetch them.
func (r *receiver) prefetch(now protocol.Time) bool {
	if r.replica.lacking() {
		return r.replica.expected()
	}
	filled := r.prefetched.Fill(func() {
		r.machine.DeliverEach(now, prefetch.Count, r.prefetched.add)
		for range prefetch.Count {
			i, ok := r.direct.deliverDirect()
			if !ok {
				break
			}
			r.prefetched.Add(i)
		}
	})
	drained := r.config.State == nil && !r.deliverable()
	r.prefetched.Drained.Store(drained)
	return filled || drained
}

// wakeReceivers wakes goroutines blocked in Messages. If one waits, it fills the prefetch buffer
// in this step, which saves the receiver a step. It leaves messages in the inbox if taking them
// could make the member send something: the step has sent its frames already.
func (r *receiver) wakeReceivers(now protocol.Time) {
	if p := &r.prefetched; p.Drained.Load() {
		if !r.stream.Withholding() {
			p.Fill(func() { r.machine.DeliverEach(now, prefetch.Count, p.add) })
		}
		p.Drained.Store(!r.deliverable())
	}
	notify.Signal(r.arrived)
}

// stepReceiver passes on what has arrived for the program in a step, within node.Do.
func (r *receiver) stepReceiver(now protocol.Time) {
	if r.deliverable() {
		if r.config.OnMessage != nil {
			r.prefetchInStep(now)
		} else {
			r.wakeReceivers(now)
		}
	}
	r.stream.Arrived(func(id uint64) { r.topics[id].wakeReceivers(now) })
}

// noteReceived tells the machine that the program makes progress, if it is slow. It is called within
// node.Do.
func (r *receiver) noteReceived(now protocol.Time) {
	if received := r.received.Load(); received != r.noted && r.machine.Slow() {
		r.noted = received
		r.machine.Received(now)
	}
}

// deliverable reports whether something waits for the program. While the program lacks the
// state, that is only the state.
func (r *receiver) deliverable() bool {
	if r.replica.lacking() {
		return r.replica.expected()
	}
	return r.stream.Pending() > 0 || r.direct.channel != nil && r.direct.channel.Pending() > 0
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
func (r *receiver) notePast(i *item) {
	if i.gap != nil && r.config.State == nil {
		r.progress.Complete(i.View)
		r.changed.Notify()
	}
}

// prefetched are messages that wait for the program.
type prefetched struct{ prefetch.Queue[item] }

// add adds a message of the member.
func (p *prefetched) add(m *stream.Message) {
	p.Add(item{
		Message: Message{
			From: int(m.Root), Data: m.Data, View: m.View, Topic: m.Topic, Header: m.Header.Map(), lease: m.Lease,
		},
		lost: m.Lost, begins: m.Begins, position: m.Position,
	})
}

// dispatch calls the program's handler, if it has one, for messages that have
// arrived. It is called by whichever goroutine has received something, when that
// has been passed on: the message is in the program's hands without another
// goroutine having to be woken. One at a time calls the handler; what others
// bring meanwhile is left to it, so that order is kept.
func (r *receiver) dispatch() {
	for r.pending.Load() && r.dispatching.CompareAndSwap(false, true) {
		r.pending.Store(false) // what is left is pending again after the step
		if r.readyToDispatch() && r.fetch() {
			for i := range r.dispatched {
				if it := &r.dispatched[i]; r.replica.forProgram(it) {
					r.config.OnMessage(it.result())
					r.received.Add(1)
				}
				r.progress.done(&r.dispatched[i])
				in := r
				if s := r.group.session(); s != nil { // otherwise this membership is just beginning
					in = &s.receiver
				}
				in.notePast(&r.dispatched[i])
				in.consumers.noteProcessed()
			}
		}
		r.dispatching.Store(false)
	}
}

// program is the program's handler, as the goroutines see it that receive frames.
type program struct{ r *receiver }

// Pending implements [transport.Program].
func (p program) Pending() bool { return p.r.pending.Load() && !p.r.dispatching.Load() }

// Dispatch implements [transport.Program].
func (p program) Dispatch() { p.r.dispatch() }

// dispatchOwn calls the program's handler for messages of this process, which no event of the
// transport brings.
func (r *receiver) dispatchOwn() {
	if (r.config.Delivery.Echo || r.config.State != nil) && r.config.OnMessage != nil {
		r.dispatch()
	}
}

// readyToDispatch reports whether the program has the state, if there is one. What is left of
// an earlier membership, and the GapError, come before it.
func (r *receiver) readyToDispatch() bool {
	if r.config.State != nil && !r.prefetched.Empty() {
		r.pending.Store(true) // for what follows
		return true
	}
	return r.replica.restoreState()
}

// fetch takes messages for the handler: those that a step has prefetched or, if there are
// none, those that wait. It returns false if the group is closed.
func (r *receiver) fetch() bool {
	r.dispatched = r.prefetched.Exchange(r.dispatched)
	if len(r.dispatched) > 0 {
		if r.left.Load() {
			r.pending.Store(true)
		}
		return true
	}
	if r.node.Do(func(now protocol.Time) { r.prefetch(now) }) != nil {
		return false
	}
	r.dispatched = r.prefetched.Exchange(r.dispatched)
	return true
}

// prefetchInStep takes messages for the handler within the step that has brought them, which
// saves a step of their own. It leaves them if the handler is still busy with others, and if
// to take them may make the member send something: the step has sent its frames already.
func (r *receiver) prefetchInStep(now protocol.Time) {
	if r.config.State == nil && !r.dispatching.Load() && !r.stream.Withholding() {
		r.prefetched.Extend(func(most int) { r.machine.DeliverEach(now, most, r.prefetched.add) })
	}
	r.left.Store(r.deliverable())
	r.pending.Store(true)
}
