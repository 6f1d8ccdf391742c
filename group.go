// Package pleach is group communication that finishes although members die.
//
// A broadcast goes along a tree, as fast as the network allows. Dead members leave
// gaps on a ring of ranks, and the live members next to a gap close it: each offers
// the message to its neighbors, further and further out, until it has heard from a
// live one on that side. No failure detector, acknowledgment, timeout or restart is
// needed to reach every live member (Küttler et al., Corrected Trees for Reliable
// Group Communication, PPoPP 2019).
//
// A process becomes a member of a group by one of three calls. [Start] is for
// processes that start together, under a launcher or with a list of addresses.
// [Create] begins a group with one member, and [Join] adds a process to a running
// group:
//
//	group, err := pleach.Join(ctx, pleach.Config{Group: "web"}, "10.0.0.1:7000")
//	if err != nil {
//		return err
//	}
//	defer group.Close()
//	err = group.Broadcast(ctx, []byte("flush the cache"))
//
// [Group.Messages] yields what other members broadcast: each message of a live
// member exactly once, in the order in which that member sent them.
//
// Members agree on numbered views: [Group.Views] yields them, with the members that
// joined and left. A message is delivered in the view it was sent in, to every
// member that continues to the next view or to none (view synchrony). A view needs
// a majority of the voters of the one before, or half of them with the lowest one, so that a
// partitioned network continues on one side only. [Group.WaitStable] waits until every
// member of the view has received what this process broadcast.
//
// [NewWorld] is for jobs that compute together: the functions of package
// [github.com/pleach-go/pleach/collective] run in a [World] and complete with the
// failure-free result although processes die:
//
//	world, err := pleach.NewWorld(ctx, pleach.Config{}) // rank and addresses from the launcher
//	if err != nil {
//		return err
//	}
//	sum, err := collective.Allreduce(ctx, world, mine, collective.Sum[float64](), collective.Restore(load))
//	if err != nil {
//		return err
//	}
//	return world.Finalize(ctx)
//
// [Inspect] looks at a running group from outside.
package pleach

import (
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/machine/member"
)

// Group is this process in a group: a member or, with Config.Recovery.Rejoin, a former one that
// joins again. Its methods are safe for concurrent use.
type Group struct {
	config   Config
	current  atomic.Pointer[session] // the present membership, or the last one
	delivery delivery
	handlers handlers
	topics   topics
	staying
	unconfirmed unconfirmed
}

// newGroup returns a group whose process is not a member yet.
func newGroup(c Config) *Group {
	g := &Group{config: c, delivery: delivery{arrived: make(chan struct{}, 1)}}
	g.init()
	for name, f := range c.Delivery.Handlers {
		g.Handle(name, f)
	}
	for _, name := range c.Delivery.Topics {
		g.topics.list = append(g.topics.list, g.newSubscription(name, true))
	}
	return g
}

// enter makes a process that has found its place a member. The unicast channel may be nil,
// and so is the gap of a first membership.
func (g *Group) enter(c Config, s *initialState, u member.Unicast, gap *GapError) error {
	g.topics.mu.Lock() // a subscription is made in one membership or in the other
	defer g.topics.mu.Unlock()
	next, err := newSession(g, c, s, u, gap)
	if err == nil {
		g.unconfirmed.begin(g, next)
		g.renewed.Notify()
		if c.OnMessage != nil && next.receiver.pending.Load() {
			go next.receiver.dispatch() // markers wait
		}
	}
	return err
}

// session returns the present membership, or the last one.
func (g *Group) session() *session { return g.current.Load() }

// Rank returns this process's rank. A process that joins again may get another one.
func (g *Group) Rank() int { return g.session().Rank() }

// Self returns this process as the others see it, with its address and its meta.
func (g *Group) Self() Member { return g.session().Self() }

// DataDir returns Config.Recovery.DataDir.
func (g *Group) DataDir() string { return g.config.Recovery.DataDir }

// Size returns the number of members of the current view. [View.Slots] counts
// ranks, holes included.
func (g *Group) Size() int { return g.session().Size() }
