package ordered

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/services/sequencer"
)

// ErrStateLost is returned by [Order.Err] if this process has joined a group of which no member
// is left that knows the order: all of them have died before it could take it over.
var ErrStateLost = errors.New("ordered: all members that knew the order are gone")

// Order is this process's membership in a group with one order of messages. Its methods are
// safe for concurrent use.
type Order struct {
	config Config
	group  *pleach.Group
	link
	ready   chan struct{}   // closed when group is there
	life    context.Context // ends with this membership; its cause is Err
	end     context.CancelCauseFunc
	running sync.WaitGroup

	// There may be something to broadcast, to forward or to acknowledge.
	casts, forwards, acks chan struct{}
	room                  notify.Notifier // notifies when fewer bytes wait

	delivered []delivery // for Messages to yield, of the goroutine that receives

	mu      sync.Mutex // guards the rest
	machine *sequencer.Machine
	knows   bool // this process knows the order
	stats   Stats
}

// link is how an order uses its group, which may be its own or carry other messages, too.
type link struct {
	broadcast   func(ctx context.Context, body []byte) error
	acknowledge func(ctx context.Context, to int, body []byte) error
	forwardName string       // of the requests by which members forward messages to the leader
	leave       func() error // nil: the group is not the order's to leave
}

// Stats counts what an order has done in this process.
type Stats struct {
	// Broadcast counts the messages of this process, and Resent those that were sent again
	// to another leader, or because it was not known whether they had arrived.
	Broadcast uint64 `json:"broadcast"`
	Resent    uint64 `json:"resent"`
	// Delivered counts the messages that were delivered to the program.
	Delivered uint64 `json:"delivered"`
	// Begun counts how often the order began again because no member knew it ([SharedConfig]).
	Begun uint64 `json:"begun"`
	// PendingBytes of this process's messages have no place in the order yet.
	PendingBytes int `json:"pending_bytes"`
	// Number is the place of the last message that has one, and View the view that it was
	// given in or a later one, whose leader has the rank Leader. That is -1 until this process
	// knows it.
	Number uint64 `json:"number"`
	View   uint64 `json:"view"`
	Leader int    `json:"leader"`
}

// retryDelay is how long a failed send waits until it is repeated.
const retryDelay = 5 * time.Millisecond

// Join makes this process a member of a group with one order. Without seeds and
// Config.Group.Expect it begins the group ([pleach.Create]), otherwise it joins one
// ([pleach.Join]), whose errors it returns. ctx bounds the call, not the membership. A program
// must receive by [Order.Messages].
func Join(ctx context.Context, c Config, seeds ...string) (*Order, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	o := newOrder(c)
	var err error
	if len(seeds) == 0 && c.Group.Expect == 0 {
		o.group, err = pleach.Create(ctx, o.groupConfig())
	} else {
		o.group, err = pleach.Join(ctx, o.groupConfig(), seeds...)
	}
	if err != nil {
		o.end(err)
		return nil, err
	}
	o.attach(link{broadcast: o.group.Broadcast, acknowledge: o.sendTo, forwardName: requestName, leave: o.group.Close})
	o.start()
	return o, nil
}

func newOrder(c Config) *Order {
	o := &Order{
		config: c, ready: make(chan struct{}),
		casts: make(chan struct{}, 1), forwards: make(chan struct{}, 1), acks: make(chan struct{}, 1),
	}
	o.life, o.end = context.WithCancelCause(context.Background())
	return o
}

// attach makes this process a member of its group in the order.
func (o *Order) attach(l link) {
	self := o.group.Self()
	o.link = l
	o.enter(sequencer.Member{Rank: self.Rank, Incarnation: self.Incarnation})
}

// start begins the part of this process in the order of its group.
func (o *Order) start() {
	close(o.ready)
	o.running.Go(o.watch)
	o.running.Go(o.cast)
	o.running.Go(o.forward)
	if o.config.Safe {
		o.running.Go(o.sendAcks)
	}
}

// firstIncarnation is that of the members that have begun a group.
const firstIncarnation = 1

// enter restarts this process's part in the order, as a member.
func (o *Order) enter(self sequencer.Member) {
	batch, _ := o.config.limits()
	o.machine = sequencer.New(sequencer.Config{Self: self, Safe: o.config.Safe, MaxBatch: batch})
	o.knows = self.Incarnation == firstIncarnation
	if v := o.group.View(); v.Err == nil {
		members, voters := membersOf(v)
		o.machine.View(v.Number, members, voters)
	}
}

// Broadcast sends data to all members, in one order with all other messages. It returns when the
// message is on its way: Messages yields it, in this process too. It blocks while 1 MiB of this
// process's messages have no place in the order yet, as when there is no quorum. The caller may
// reuse data, which has [Order.MaxMessage] bytes at most. A topic has 255 bytes at most; all topics
// have one order.
//
// If this process is removed from its group meanwhile, messages that it has not received itself
// may have been delivered to others, or not. With Config.Group.Recovery.Rejoin, Messages then
// yields a [*pleach.GapError].
func (o *Order) Broadcast(ctx context.Context, topic string, data []byte) error {
	if len(topic) > sequencer.MaxTopic {
		return fmt.Errorf("ordered: broadcast: a topic of %d bytes is too long: %d at most", len(topic), sequencer.MaxTopic)
	}
	if len(data) > o.MaxMessage() {
		return fmt.Errorf("ordered: broadcast: %d bytes are too long: %d at most (half of the lowest Limits.MaxMessage)",
			len(data), o.MaxMessage())
	}
	data = slices.Clone(data)
	for {
		room := o.room.Wait()
		if err := o.Err(); err != nil {
			return fmt.Errorf("ordered: broadcast: %w", err)
		}
		if o.submit(topic, data) {
			notify.Signal(o.forwards)
			return nil
		}
		select {
		case <-room:
		case <-o.life.Done():
		case <-ctx.Done():
			return fmt.Errorf("ordered: broadcast: %w", ctx.Err())
		}
	}
}

// MaxMessage returns how long a message may be: half of Config.Group.Limits.MaxMessage, or of
// what all members can receive if that is less ([pleach.Group.MaxMessage]).
func (o *Order) MaxMessage() int {
	_, message := o.config.limits()
	return min(message, o.group.MaxMessage()/2)
}

// submit gives a message to the machine, if there is room.
func (o *Order) submit(topic string, data []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine.Pending() >= maxPending {
		return false
	}
	o.machine.Submit(topic, data)
	o.stats.Broadcast++
	return true
}

// Group returns the group, for its views, requests and topics. Its Messages are those of this
// package: they are not for the program, nor is [pleach.Group.Send].
func (o *Order) Group() *pleach.Group { return o.group }

// Stats returns counters of this process.
func (o *Order) Stats() Stats {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.stats
	s.PendingBytes, s.Resent = o.machine.Pending(), o.stats.Resent+o.machine.Resent()
	s.View, s.Leader, s.Number = o.machine.Place()
	return s
}

// Err returns why this process is no longer a member, as [pleach.Group.Err] does, or
// [ErrStateLost]. It returns nil while the process is a member.
func (o *Order) Err() error {
	if o.life.Err() != nil {
		return context.Cause(o.life)
	}
	return o.group.Err()
}

// Close leaves the group and releases its resources: see [pleach.Group.Close]. What was
// broadcast and has no place in the order yet is dropped. The group of a [Shared] order stays.
func (o *Order) Close() error { return o.stop(o.leave) }

// Abort stops immediately without notifying the group; the other members see a crash. It is
// Close for a [Shared] order.
func (o *Order) Abort() error {
	if o.leave == nil {
		return o.stop(nil)
	}
	return o.stop(o.group.Abort)
}

func (o *Order) stop(leave func() error) (err error) {
	o.end(pleach.ErrClosed)
	if leave != nil {
		err = leave()
	}
	o.running.Wait()
	return err
}

func membersOf(v pleach.View) (members []sequencer.Member, voters int) {
	members = make([]sequencer.Member, 0, v.Size())
	for _, observers := range []bool{false, true} {
		for _, m := range v.Members() {
			if m.Observer == observers {
				members = append(members, sequencer.Member{Rank: m.Rank, Incarnation: m.Incarnation})
			}
		}
		if !observers {
			voters = len(members)
		}
	}
	return members, voters
}
