package pleach

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/dedup"
	"github.com/pleach-go/pleach/internal/door"
	"github.com/pleach-go/pleach/internal/founding"
	"github.com/pleach-go/pleach/internal/lifecycle"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/node"
	"github.com/pleach-go/pleach/internal/notify"
	"github.com/pleach-go/pleach/internal/record"
	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Group is this process's membership in a group. Its methods are safe for
// concurrent use.
type Group struct {
	config Config
	self   membership.Member
	log    *slog.Logger // names this member in every line
	data   *dataDir     // where it saves its vote; nil: it does not
	protocols
	network
	detection
	views
	ending
	seeds atomic.Pointer[[]string] // without its own address; see seeds.go
	admitting
	troubles
	sending
	receiving
	stability
	direct   directs
	handlers handlers
	replica  replica
	topics   map[uint64]*Topic // the subscriptions, by their IDs; used within node.Do
}

// protocols are the machines and what drives them.
type protocols struct {
	node     *node.Node
	machine  *member.Machine  // used only within node.Do, to look at
	inputs   inputs           // the same, or what records it: whatever changes the machine goes there
	recorder *record.Recorder // nil: none
	stream   *stream.Member   // its streams, likewise
}

// network is what the group uses of its transport.
type network struct {
	listening  string // the address of its socket
	addresses  transport.AddressBook
	roster     transport.Roster
	localError func() (time.Time, error) // the transport's last; nil: it tells none
	queued     func(protocol.Rank) int   // bytes that wait in the transport for a peer; nil: it tells none
}

// detection is what finds dead members.
type detection struct {
	detector    detect.Detector // nil: the group is fixed
	connections *detect.Connections
	silent      *detect.Tracker // has the members that heartbeats find silent
}

// views are the present view, and what tells of the next.
type views struct {
	view    *atomic.Pointer[membership.View]
	shown   atomic.Pointer[View] // what View returned last
	changed notify.Notifier      // notifies when there is a new view, or more is stable or known to be lost
}

// ending is whether this process is a member, and why not.
type ending struct {
	life      context.Context // ends with this process's membership; its cause is Err
	end       context.CancelCauseFunc
	quorumErr atomic.Pointer[QuorumError]
	removal   atomic.Pointer[error] // why this process is about to be no longer a member
	closing   sync.Once
	joined    time.Time         // when this membership began
	backoff   lifecycle.Backoff // of Rejoin; set before the program has the group
}

// admitting is how candidates become members, and members that are behind catch up.
type admitting struct {
	began      []founding.Candidate // see founding.go
	admissions map[protocol.Rank]admission
	reachSlots *door.Slots    // one for each candidate that is dialed
	reaching   sync.WaitGroup // dials candidates; see admit
	refusals   dedup.Causes   // of candidates
	behind     dedup.Causes   // the members that are asked to catch up
	asking     sync.WaitGroup // see endEvicted, askToCatchUp
	catchingUp atomic.Bool
}

// troubles are what this member knows of trouble; used within node.Do.
type troubles struct {
	suspects    map[protocol.Rank]Suspect // the members that cannot be reached
	firstViewAt time.Time                 // when this member entered the first view, if it has
	evicted     bool                      // see endEvicted
	history     []ViewChange              // see history.go
	impaired    bool                      // see checkImpaired
	notSaved    atomic.Pointer[saveError] // the last trouble with saving; nil: none
}

// sending is what broadcasts wait for.
type sending struct {
	sendLock  chan struct{} // held by the one broadcast that is writing
	metaLock  chan struct{} // held by the one SetMeta that waits
	tracing   tracing
	written   chan struct{} // what was written is on its way, or some of it
	unwritten atomic.Int64  // segments that were not, when last looked at
	restarts  atomic.Uint64 // messages cut in two by a new view, likewise
}

// receiving is how messages come to the program.
type receiving struct {
	arrived    chan struct{} // there may be a message
	prefetched prefetched    // for Messages to yield
	// See dispatch. left says that a step has not prefetched all.
	pending, dispatching, left atomic.Bool
	dispatched                 []Message // handed to the handler last, used while dispatching
}

// stability is what is known of receipts; used within node.Do.
type stability struct {
	sentIn uint64 // the view in which the last broadcast was written
	stable uint64 // when last looked at
	lossy  int    // likewise
}

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
	// Topic is the topic that the message was broadcast to ([Group.Topic]). If empty, none.
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

	begins bool // no message: a view begins here; see state.go
	lease  *stream.Lease
}

// Release says that the program has done with a message: the group may receive another one
// into the memory of its Data, which the program must not read any more. No message has to
// be released. For a program that receives many long messages, it saves the making and the
// clearing of memory.
func (g *Group) Release(m Message) {
	if m.lease != nil {
		g.node.Look(func() { g.stream.Release(m.lease) })
	}
}

// Rank returns this process's rank.
func (g *Group) Rank() int { return int(g.self.Rank) }

// Self returns this process as the others see it, with its address and its meta.
func (g *Group) Self() Member {
	if m := g.view.Load().Members.Find(g.self.Rank); m != nil && m.Incarnation == g.self.Incarnation {
		return memberOf(m)
	}
	return memberOf(&g.self) // it is not in the view, or its group is static
}

// Size returns the number of members of the current view. [View.Slots] counts
// ranks, holes included.
func (g *Group) Size() int { return g.view.Load().Members.Len() }

// Broadcast sends data to all other members; the sender itself does not receive it.
// When it returns nil, the message is
// handed to the operating system, and every live member receives it even if others
// die. The caller may reuse data.
//
// Small messages of a burst may wait a fraction of a millisecond to be sent
// together. Close, Leave and WaitStable send what is waiting.
//
// Broadcast blocks while Config.Limits.OutboxBytes are waiting to be sent, and once,
// briefly, for a member that has become slow. If ctx ends or the quorum is lost meanwhile,
// a message that was accepted in part reaches no member, and one that was accepted whole
// is still sent.
func (g *Group) Broadcast(ctx context.Context, data []byte) error {
	return g.broadcast(ctx, "", data, nil)
}

// broadcast broadcasts to a topic, unless that is empty. If mark is not nil, it is called
// before the message is written, within node.Do.
func (g *Group) broadcast(ctx context.Context, topic string, data []byte, mark func()) error {
	if err := g.lockSend(ctx); err != nil {
		return g.wrap("broadcast", err)
	}
	defer g.unlockSend()
	if most := g.stream.MaxMessage() - stream.TopicSize(topic); len(data) > most {
		return g.wrap("broadcast", fmt.Errorf("%d bytes are too long: %d at most (Config.Limits.MaxMessage)", len(data), most))
	}
	for {
		if mark != nil {
			_ = g.node.Do(func(protocol.Time) { mark() })
		}
		again, err := g.send(ctx, topic, data)
		if !again || err != nil {
			return g.wrap("broadcast", err)
		}
	}
}

// send sends a message. It has to be sent again if a new view has cut it in two.
func (g *Group) send(ctx context.Context, topic string, data []byte) (again bool, err error) {
	if err := g.sendErr(); err != nil {
		return false, err
	}
	var restarts uint64
	cut := g.restarts.Load()
	size := g.stream.SegmentSize()
	for first := true; first || len(data) > 0; first = false {
		piece := data[:min(len(data), size)]
		data = data[len(piece):]
		if restarts, err = g.write(ctx, topic, piece, len(data), cut); err != nil || restarts != cut {
			return err == nil, err
		}
		topic = "" // the first piece has it
	}
	if g.unwritten.Load() == 0 && g.restarts.Load() == cut {
		return false, nil // as usual: what was written last went out at once
	}
	err = g.waitToSend(ctx, func(protocol.Time) bool {
		restarts = g.stream.Restarts()
		return g.stream.Unwritten() == 0 || restarts != cut
	})
	return restarts != cut, err
}

// lockSend waits until nobody else is broadcasting.
func (g *Group) lockSend(ctx context.Context) error {
	select {
	case g.sendLock <- struct{}{}:
		return nil
	default:
	}
	for {
		changed := g.changed.Wait()
		if lost := g.quorumErr.Load(); lost != nil {
			return lost
		}
		select {
		case g.sendLock <- struct{}{}:
			return nil
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.life.Done():
			return g.Err()
		}
	}
}

func (g *Group) unlockSend() { <-g.sendLock }

// flush waits until all that was broadcast before has been sent.
func (g *Group) flush(ctx context.Context) error {
	if err := g.lockSend(ctx); err != nil {
		return err
	}
	defer g.unlockSend()
	if err := g.node.Do(func(protocol.Time) { g.inputs.FlushBatch() }); err != nil {
		return ErrClosed
	}
	return g.wait(ctx, g.written, func(protocol.Time) bool { return g.stream.Unwritten() == 0 })
}

// write hands a piece of a message to the member, as soon as it has room, unless
// the message has been cut meanwhile. The first piece may have a topic.
func (g *Group) write(ctx context.Context, topic string, piece []byte, left int, cut uint64) (restarts uint64, err error) {
	var written error
	err = g.waitToSend(ctx, func(protocol.Time) bool {
		if restarts = g.stream.Restarts(); restarts != cut {
			return true
		}
		if topic == "" {
			written = g.inputs.Write(piece, left)
		} else {
			written = g.inputs.WriteTopic(topic, piece, left)
		}
		if written == nil {
			g.sentIn = g.view.Load().Number
		}
		return !errors.Is(written, stream.ErrBusy)
	})
	if err = errors.Join(err, written); err != nil {
		_ = g.node.Do(func(protocol.Time) { g.inputs.Abandon() })
	}
	return restarts, err
}

// wait tries until it works: at once, and each time there is a sign that it may.
func (g *Group) wait(ctx context.Context, sign <-chan struct{}, try func(now protocol.Time) bool) error {
	for {
		ok := false
		if err := g.node.Do(func(now protocol.Time) { ok = try(now) }); err != nil {
			return ErrClosed
		}
		if ok {
			return nil
		}
		if err := g.await(ctx, sign); err != nil {
			return err
		}
	}
}

// waitToSend tries until it works, or the quorum is lost: without one, members that hold
// this one up are not removed.
func (g *Group) waitToSend(ctx context.Context, try func(now protocol.Time) bool) error {
	for {
		ok := false
		if err := g.node.Do(func(now protocol.Time) { ok = try(now) }); err != nil {
			return ErrClosed
		}
		if ok {
			return nil
		}
		changed := g.changed.Wait()
		if lost := g.quorumErr.Load(); lost != nil {
			return lost
		}
		select {
		case <-g.written:
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.life.Done():
			return g.Err()
		}
	}
}

// await waits for a sign.
func (g *Group) await(ctx context.Context, sign <-chan struct{}) error {
	select {
	case <-sign:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-g.life.Done():
		return g.Err()
	}
}

// Messages yields what other members broadcast without a topic, and what they send to
// this one: each message once, the broadcasts of one member in the order in which it made
// them, and what it has sent in that order. What has a topic is for [Topic.Messages]. It
// ends when ctx ends or this process is no longer a member ([Group.Err] says why). If
// several goroutines receive, each message goes to one of them.
//
// Up to Config.Limits.InboxBytes wait for the caller. Beyond that, messages stay
// with other members, and arrive later unless those no longer keep them.
func (g *Group) Messages(ctx context.Context) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		for ctx.Err() == nil {
			m, err := g.next(ctx)
			if err != nil || !yield(m) {
				return
			}
		}
	}
}

// next returns the next message, as soon as there is one.
func (g *Group) next(ctx context.Context) (Message, error) {
	for {
		g.restoreState()
		if m, ok := g.prefetched.next(); ok {
			if g.forProgram(&m) {
				return m, nil
			}
			continue
		}
		if err := g.receive(ctx, &g.prefetched, g.arrived, g.prefetch); err != nil {
			return Message{}, err
		}
	}
}

// receive takes messages from the member, or waits until there may be some to yield.
func (g *Group) receive(ctx context.Context, p *prefetched, arrived <-chan struct{}, take func(now protocol.Time) bool) error {
	if p.drained.Load() {
		return g.await(ctx, arrived)
	}
	return g.wait(ctx, arrived, take)
}

// prefetch takes messages from the member. It reports false if there are none, and a step
// that brings some will not prefetch them.
func (g *Group) prefetch(now protocol.Time) bool {
	if g.replica.lacking {
		return g.replica.arrived != nil || g.replica.offering
	}
	filled := g.prefetched.fill(func(p *prefetched) {
		g.inputs.DeliverEach(now, prefetchCount, p.add)
		for range prefetchCount {
			m, ok := g.deliverDirect()
			if !ok {
				break
			}
			p.messages = append(p.messages, m)
		}
	})
	drained := g.config.State == nil && !g.deliverable()
	g.prefetched.drained.Store(drained)
	return filled || drained
}

// handOver gives a sign to those who receive. If they wait, it takes messages for them
// within the step that has brought them, which saves steps of their own. It leaves messages
// if to take them may make the member send something: the step has sent its frames already.
func (g *Group) handOver(now protocol.Time) {
	if p := &g.prefetched; p.drained.Load() {
		if !g.stream.Withholding() {
			p.fill(func(p *prefetched) { g.inputs.DeliverEach(now, prefetchCount, p.add) })
		}
		p.drained.Store(!g.deliverable())
	}
	give(g.arrived)
}

// deliverable reports whether something waits for the program. While the program lacks the
// state, that is only the state.
func (g *Group) deliverable() bool {
	if g.replica.lacking {
		return g.replica.arrived != nil || g.replica.offering
	}
	return g.stream.Pending() > 0 || g.direct.machine != nil && g.direct.machine.Pending() > 0
}

// afterStep gives signs to those who wait. It is called within node.Do.
func (g *Group) afterStep(now protocol.Time) {
	g.stepDirect()
	if g.deliverable() {
		if g.config.Handler != nil {
			g.prefetchInStep(now)
		} else {
			g.handOver(now)
		}
	}
	g.stream.Arrived(func(id uint64) { g.topics[id].handOver(now) })
	unwritten, restarts := int64(g.stream.Unwritten()), g.stream.Restarts()
	if unwritten != g.unwritten.Load() || restarts != g.restarts.Load() {
		g.restarts.Store(restarts) // first: nothing unwritten must not look like all sent
		g.unwritten.Store(unwritten)
		give(g.written)
	}
	if stable, lossy := g.stream.Stable(), len(g.stream.Incomplete()); stable != g.stable || lossy != g.lossy {
		g.stable, g.lossy = stable, lossy
		g.changed.Notify()
	}
	g.checkImpaired(now)
	g.inputs.Settle(now)
}

// give gives a sign, unless one is there already.
func give(sign chan<- struct{}) {
	select {
	case sign <- struct{}{}:
	default:
	}
}
