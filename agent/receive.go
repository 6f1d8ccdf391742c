package agent

import (
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/agent/transfer"
	"github.com/pleach-go/pleach/fleet"
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

// receive hands a message to the store, unless it is of a copy. It never waits for a subscriber.
func (a *Agent) receive(m pleach.Message, err error) {
	if err != nil {
		return // a gap shows in the view that begins next, and a group with views loses no message
	}
	g := a.receiver.get()
	switch {
	case g == nil:
	case m.Topic == servicesTopic:
		if s := a.services.Load(); s != nil {
			s.shared.Receive(m, nil)
		}
	case m.Topic == rolloutsTopic:
		if s := a.services.Load(); s != nil {
			s.rollouts.shared.Receive(m, nil)
		}
	case strings.HasPrefix(m.Topic, config.ReservedTopics): // of shards that this agent does not have yet
	case m.Topic == fleet.Topic: // the fleet has subscribed to it
	case m.Topic == transfer.Topic:
		if s := a.files.Load(); s != nil && m.From != g.Rank() {
			s.Receive(m)
		}
	default:
		a.store.push(arrival{counted: !m.Direct, message: retention.Message{
			Topic: m.Topic, From: m.From, View: m.View, Time: time.Now(), Direct: m.Direct, Header: m.Header,
			Data: m.Data,
		}})
	}
}

// receiveView hands a view to the store, where it begins among the messages.
func (a *Agent) receiveView(v pleach.View) {
	if g := a.receiver.get(); g != nil {
		a.store.push(arrival{begins: &v, group: g})
	}
}
