package pleach

import (
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/member"
)

// Group is this process in a group: a member or, with Config.Rejoin, a former one that
// joins again. Its methods are safe for concurrent use.
type Group struct {
	config   Config
	current  atomic.Pointer[session] // the present membership, or the last one
	delivery delivery
	handlers handlers
	topics   topics
	staying
}

// newGroup returns a group whose process is no member yet.
func newGroup(c Config) *Group {
	g := &Group{config: c, delivery: delivery{arrived: make(chan struct{}, 1)}}
	g.init()
	for name, f := range c.Handlers {
		g.Handle(name, f)
	}
	for _, name := range c.Topics {
		g.topics.list = append(g.topics.list, g.newSubscription(name, true))
	}
	return g
}

// enter makes a process that has found its place a member. The unicast channel may be nil,
// and so is the gap of a first membership.
func (g *Group) enter(c Config, s *initialState, u member.Unicast, gap *Gap) error {
	g.topics.mu.Lock() // a subscription is made in one membership or in the other
	defer g.topics.mu.Unlock()
	next, err := newSession(g, c, s, u, gap)
	if err == nil {
		g.current.Store(next)
		g.renewed.Notify()
		if c.OnMessage != nil && next.pending.Load() {
			go next.dispatch() // notices wait
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

// Size returns the number of members of the current view. [View.Slots] counts
// ranks, holes included.
func (g *Group) Size() int { return g.session().Size() }
