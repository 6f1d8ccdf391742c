package agent

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/backfill"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/internal/base/notify"
)

// The store takes in what the group delivers, in order: it gives each message its place in the
// stream of its sender, writes it to the journal, and then shows it to subscribers. So a
// subscriber has no message that a killed agent does not know of when it is started again.
// When a membership begins, what was missed comes first (fill.go, fleet_fill.go); what arrives
// meanwhile waits.

// arrivalBytes is the approximate memory of an arrival without its data.
const arrivalBytes = 256

// store is the log of messages and what fills it.
type store struct {
	saver
	limits  retention.Limits
	arrived chan struct{}   // there is something in the queue
	taken   notify.Notifier // the queue has room, or the positions have changed
	stopped chan struct{}
	done    sync.WaitGroup

	mu      sync.Mutex // guards the positions, too, which only the store's goroutine changes
	queue   []arrival
	bytes   int
	callOff context.CancelFunc // ends the fill under way, until its view has begun; nil: there is none
	// entering says that a membership has begun, and its first view has not.
	entering bool
	reached  uint64 // the view up to which the log has all that the group delivers

	fleet      *attached     // the last membership in the fleet; nil: there was none
	membership pleach.Member // this process, in the present membership
	view       pleach.View   // of the messages that are taken in
	ended      bool          // the agent has ended before it has filled what it missed
}

// arrival is a message, or a view or a membership in the fleet that begins.
type arrival struct {
	message retention.Message
	counted bool   // it is a broadcast of a member of the view
	lost    uint64 // messages to the fleet before this one that are lost to the zone, which is none itself
	joined  *attached
	begins  *pleach.View
	group   *pleach.Group
}

// newStore makes a store with what the journal in a directory has, or without one if that is
// empty.
func newStore(dir string, limits retention.Limits, logger *slog.Logger) (*store, error) {
	s := &store{
		saver:  saver{contents: contents{log: retention.New(newEpoch(), limits)}, logger: logger},
		limits: limits, arrived: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	if dir == "" {
		return s, nil
	}
	if err := s.open(dir, limits.Bytes); err != nil {
		return nil, err
	}
	return s, nil
}

// push hands something to the store. It waits while the queue is full; a fill that the queue
// waits for is called off, since replies to it come by the goroutine that waits here.
func (s *store) push(a arrival) {
	s.mu.Lock()
	for s.bytes > s.limits.Bytes {
		taken := s.taken.Wait()
		if s.callOff != nil {
			s.callOff()
		}
		s.mu.Unlock()
		select {
		case <-taken:
		case <-s.stopped:
			return
		}
		s.mu.Lock()
	}
	s.queue, s.bytes = append(s.queue, a), s.bytes+len(a.message.Data)+arrivalBytes
	s.mu.Unlock()
	notify.Signal(s.arrived)
}

// run takes in what arrives, until stop. A fill ends with ctx.
func (s *store) run(ctx context.Context) {
	for {
		select {
		case <-s.arrived:
		case <-s.stopped:
			s.takeAll(ctx)
			s.close()
			return
		}
		s.takeAll(ctx)
	}
}

// stop takes in what is there, and closes the journal.
func (s *store) stop() {
	close(s.stopped)
	s.done.Wait()
}

// takeAll takes in what is in the queue.
func (s *store) takeAll(ctx context.Context) {
	s.mu.Lock()
	queue := s.queue
	s.queue, s.bytes = nil, 0
	s.mu.Unlock()
	s.taken.Notify()
	var batch []retention.Message
	for i := range queue {
		a := &queue[i]
		if s.ended {
			return
		}
		switch {
		case a.begins != nil:
			s.publish(batch)
			batch = nil
			s.begin(ctx, a.group, a.begins)
		case a.joined != nil:
			s.publish(batch)
			batch = nil
			s.enterFleet(ctx, a.joined)
		case a.message.Fleet:
			batch = s.takeFleet(ctx, a, batch)
		default:
			batch = append(batch, s.place(a))
		}
	}
	s.publish(batch)
}

// place gives a message the name of its sender, and its place in the sender's stream.
func (s *store) place(a *arrival) retention.Message {
	m := a.message
	if m.FromID == "" {
		from, _ := s.view.Member(m.From)
		m.FromID = from.ID
	}
	if a.counted {
		s.mu.Lock()
		m.Index = s.positions.Next(backfill.Stream{View: m.View, Rank: m.From})
		s.mu.Unlock()
	}
	return m
}

// publish writes messages to the journal, and then shows them to subscribers.
func (s *store) publish(batch []retention.Message) {
	if len(batch) == 0 {
		return
	}
	s.saveMessages(batch)
	for i := range batch {
		s.log.Add(batch[i])
	}
}

// begin begins a view. If the agent ends before it has filled what it missed, nothing is taken
// in any more: the agent fills it when it is started again.
func (s *store) begin(ctx context.Context, g *pleach.Group, v *pleach.View) {
	self, ok := memberOf(v, g.Self().ID)
	if !ok {
		return // it is no longer a member
	}
	name := backfill.View{Number: v.Number, Print: printOf(v), Members: v.Size()}
	if self.Incarnation != s.membership.Incarnation || self.Nonce != s.membership.Nonce {
		s.ended = !s.enter(ctx, g, v, self.Rank)
		if s.ended {
			return
		}
		s.membership = self
	}
	s.view = *v
	s.mu.Lock()
	s.positions.Begin(name)
	s.reached, s.callOff, s.entering = v.Number, nil, false
	s.mu.Unlock()
	s.taken.Notify()
	s.saveView(name)
}

// memberOf finds a member by its ID.
func memberOf(v *pleach.View, id string) (pleach.Member, bool) {
	for _, m := range v.Members() {
		if m.ID == id {
			return m, true
		}
	}
	return pleach.Member{}, false
}

// printOf is a hash of the members of a view, which all of them agree on.
func printOf(v *pleach.View) uint64 {
	h := fnv.New64a()
	for _, m := range v.Members() {
		fmt.Fprintf(h, "%d %q %d %d\n", m.Rank, m.ID, m.Incarnation, m.Nonce)
	}
	return h.Sum64()
}
