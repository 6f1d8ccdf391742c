package ordered

// An order in a group that has other messages, too, and members that take no part in it, as the
// group of agents. Its members give the order to each other: see joining.go.

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/services/sequencer"
	"github.com/pleach-go/pleach/protocol"
)

// SharedConfig configures [NewShared]. All members that take part use the same, apart from the
// functions and State.
type SharedConfig struct {
	// Topic is the group's topic for the messages of the order, and begins the names of its
	// requests. It is required, as Deliver, State and Begin are.
	Topic string
	// Safe is that of [Config].
	Safe bool
	// MaxMessage is Limits.MaxMessage of the group.
	MaxMessage int
	// Deliver is called with each message in its place, one at a time, on a goroutine of the
	// group ([pleach.Config.OnMessage]).
	Deliver func(Message)
	// State is what the messages have come to. Its methods are called between two calls of
	// Deliver.
	State pleach.State
	// Begin is called between two calls of Deliver if the order begins again in a view, because no
	// member of the group knew it: the state is lost, unless there was none before. The program
	// begins with an empty state. Begin is also called once by Start, with view 0, if this process
	// has begun the group with others.
	Begin func(view uint64)
}

// Shared is an order in a group that the program joins itself, for one membership of it. The
// program puts it into the group's config, joins, and starts it:
//
//	shared := ordered.NewShared(c)
//	config.Echo, config.Handlers = true, shared.Handlers()
//	config.OnMessage = func(m pleach.Message, err error) { … shared.Receive(m, err) … }
//	group, err := pleach.Join(ctx, config, seeds...)
//	order := shared.Start(group)
//
// The voter with the lowest rank leads. Voters that take no part count for the majority of
// Safe, and while one of them has the lowest rank, messages wait.
//
// With Config.Recovery.DataDir, a group recovers after a majority of its members has restarted at
// once. Messages may be missing then that only those had, Safe or not.
type Shared struct {
	config SharedConfig
	order  *Order
	began  time.Time
	wake   chan struct{} // the machine has something to ask, or an earlier deadline

	current    atomic.Bool   // this member knows the order
	handedOver chan struct{} // closed when this member may leave

	feed    sync.Mutex // held while messages are delivered, and while the state is written or restored; guards the rest
	joining *sequencer.Joining
	armed   protocol.Time                    // deadline that the timer is set to
	asks    []sequencer.Ask                  // to be sent
	replies map[uint64]chan sequencer.Answer // to the requests of other members that wait, by number
	served  uint64                           // number of the last one
}

// NewShared returns an order that takes part in no group yet.
func NewShared(c SharedConfig) *Shared {
	order := newOrder(Config{Safe: c.Safe, Group: pleach.Config{Limits: pleach.Limits{MaxMessage: c.MaxMessage}}})
	return &Shared{
		config: c, order: order, began: time.Now(), wake: make(chan struct{}, 1), handedOver: make(chan struct{}),
		replies: make(map[uint64]chan sequencer.Answer),
	}
}

// Handlers returns the handlers of the requests between members, for [pleach.Config].
func (s *Shared) Handlers() map[string]func(ctx context.Context, r pleach.Request) ([]byte, error) {
	return map[string]func(ctx context.Context, r pleach.Request) ([]byte, error){
		s.config.Topic + forwardName: s.order.serve,
		s.config.Topic + ackName:     s.serveAck,
		s.config.Topic + markName:    s.serveMark,
		s.config.Topic + stateName:   s.serveState,

		s.config.Topic + transferName: s.serveTransfer,
	}
}

// The names of requests, behind the topic.
const (
	forwardName = ".forward"
	ackName     = ".ack"
	markName    = ".mark"
	stateName   = ".state"

	transferName = ".transfer"
)

// Start begins the order in a group that this process is a member of. The order ends with the
// membership: after a [pleach.Group.Rejoin], the program closes it and starts another one.
func (s *Shared) Start(g *pleach.Group) *Order {
	o := s.order
	o.group = g
	for name, f := range s.Handlers() { // those of the membership before may be there
		g.Handle(name, f)
	}
	o.attach(link{
		broadcast: func(ctx context.Context, body []byte) error { return g.BroadcastTopic(ctx, s.config.Topic, body) },
		acknowledge: func(ctx context.Context, to int, body []byte) error {
			_, err := g.Request(ctx, pleach.Member{Rank: to}, s.config.Topic+ackName, body)
			return err
		},
		forwardName: s.config.Topic + forwardName,
	})
	s.joining = sequencer.NewJoining(o.machine, o.knows, rand.Uint64)
	s.current.Store(o.knows)
	if o.knows {
		s.config.Begin(0)
	}
	o.start()
	o.running.Go(s.join)
	return o
}

// Current reports whether this process has the state of the order: it has begun the order with
// others, or another member has given it the state. Every message from then on reaches Deliver.
func (s *Shared) Current() bool { return s.current.Load() }

// HandOver prepares for leaving the group. It waits until another member that stays has the state of
// the order, or until no other member takes part in it. Call it before [Order.Close]: members that
// are about to join get the state meanwhile. Two members that leave at once do not rely on each
// other. It returns ctx's error if ctx ends first.
func (s *Shared) HandOver(ctx context.Context) error {
	s.step(func(now protocol.Time) {
		s.viewed()
		s.joining.Leave(now)
	})
	select {
	case <-s.handedOver:
		return nil
	case <-s.order.life.Done():
		return context.Cause(s.order.life)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Cancel ends an order that is not started, because the program has not become a member.
func (s *Shared) Cancel() { s.order.end(pleach.ErrClosed) }

// Receive takes what [pleach.Config.OnMessage] is called with, and reports whether it is a message of
// the order. It waits for Start, or Cancel.
func (s *Shared) Receive(m pleach.Message, err error) bool {
	lost, isLoss := errors.AsType[*pleach.LostError](err)
	own := err == nil && !m.Direct && m.Topic == s.config.Topic
	if !own && !isLoss {
		return false
	}
	if s.order.awaitStart(s.order.life) != nil {
		return own
	}
	if isLoss {
		s.step(func(protocol.Time) { s.joining.Lost(lost.View, lost.From) })
		return false
	}
	s.step(func(protocol.Time) { s.joining.Receive(m.View, m.From, m.Data) })
	return true
}

func (s *Shared) serveAck(ctx context.Context, r pleach.Request) ([]byte, error) {
	o := s.order
	if err := o.awaitStart(ctx); err != nil {
		return nil, err
	}
	o.mu.Lock()
	err := o.machine.Acknowledge(r.From, r.Data)
	o.mu.Unlock()
	notify.Signal(o.casts)
	return nil, err
}
