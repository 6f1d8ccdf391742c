package agent

import (
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/fleet"
	"github.com/pleach-go/pleach/internal/agent/retain"
	"github.com/pleach-go/pleach/internal/transfer"
)

// receiver knows the group whose messages arrive. The first ones may arrive before Join has
// returned it.
type receiver struct {
	mu    sync.Mutex
	known chan struct{} // closed when group is set
	group *pleach.Group // nil: it was not joined
}

// expect says that a group is about to be joined.
func (r *receiver) expect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.group = make(chan struct{}), nil
}

// set says which group that is, or nil if it could not be joined.
func (r *receiver) set(g *pleach.Group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.group = g
	close(r.known)
}

// get waits for the group.
func (r *receiver) get() *pleach.Group {
	r.mu.Lock()
	known := r.known
	r.mu.Unlock()
	<-known
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.group
}

// receive retains a message, unless it is of a copy. It never waits for a subscriber.
func (a *Agent) receive(m pleach.Message) {
	if m.Gap != nil {
		return // live has told of it
	}
	g := a.receiver.get()
	if g == nil || m.Lost > 0 {
		return // a group with views loses none
	}
	if m.Topic == servicesTopic {
		if s := a.services.Load(); s != nil {
			s.shared.Receive(m)
		}
		return
	}
	if m.From == g.Rank() && !m.Direct {
		return // broadcast has retained it
	}
	if m.Topic == fleet.Topic {
		return // the fleet has subscribed to it
	}
	if m.Topic == transfer.Topic {
		if s := a.files.Load(); s != nil {
			s.Receive(m)
		}
		return
	}
	from, _ := g.View().Member(m.From)
	a.messages.Add(retain.Message{
		Topic: m.Topic, From: m.From, FromID: from.ID, View: m.View, Time: time.Now(), Direct: m.Direct, Data: m.Data,
	})
}
