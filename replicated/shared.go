package replicated

// State machines in a group that the program joins itself: see [ordered.Shared].

import (
	"bytes"
	"context"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/ordered"
)

// SharedConfig configures [NewShared]. All members that take part use the same.
type SharedConfig struct {
	// Topic and MaxMessage are those of [ordered.SharedConfig].
	Topic      string
	MaxMessage int
	// Machines are those of [Config]. If no member of the group knows the state any more, they
	// are restored as they were given.
	Machines map[string]Machine
	// Begin, if not nil, is called when the machines begin again in a view as they were given,
	// because no member of the group knew their state, and once by Start, with view 0, if this
	// process has begun the group with others. It must return without waiting.
	Begin func(view uint64)
}

// Shared is a replica in a group that the program joins itself and that has other messages, too,
// for one membership of it. It is used as an [ordered.Shared], whose comment says what differs from
// a group of its own.
type Shared struct {
	replica *Replica
	order   *ordered.Shared
	empty   []byte // snapshot of the machines as they were given
	begun   func(view uint64)
}

// NewShared returns a replica that takes part in no group yet.
func NewShared(c SharedConfig) (*Shared, error) {
	if err := checkMachines(c.Machines); err != nil {
		return nil, err
	}
	s := &Shared{replica: newReplica(c.Machines), begun: c.Begin}
	var b bytes.Buffer
	if err := s.replica.state.Snapshot(&b); err != nil {
		return nil, err
	}
	s.empty = b.Bytes()
	s.order = ordered.NewShared(ordered.SharedConfig{
		Topic: c.Topic, Safe: true, MaxMessage: c.MaxMessage,
		Deliver: s.replica.deliver, State: &s.replica.state, Begin: s.begin,
	})
	return s, nil
}

// begin begins with the machines as they were given.
func (s *Shared) begin(view uint64) {
	if view > 0 {
		if err := s.replica.state.Restore(bytes.NewReader(s.empty)); err != nil {
			s.replica.end(err)
		}
	}
	if s.begun != nil {
		s.begun(view)
	}
}

// Current is that of [ordered.Shared]: it reports whether this process has the state.
func (s *Shared) Current() bool { return s.order.Current() }

// HandOver is that of [ordered.Shared]: call it before the process leaves the group.
func (s *Shared) HandOver(ctx context.Context) error { return s.order.HandOver(ctx) }

// Handlers returns the handlers of the requests between members, for [pleach.Config].
func (s *Shared) Handlers() map[string]func(ctx context.Context, r pleach.Request) ([]byte, error) {
	return s.order.Handlers()
}

// Receive takes what [pleach.Config.OnMessage] is called with, and reports whether it is a message of
// the replica.
func (s *Shared) Receive(m pleach.Message, err error) bool { return s.order.Receive(m, err) }

// Start begins the replica in a group that this process is a member of. Close ends it, and leaves
// the group as it is.
func (s *Shared) Start(g *pleach.Group) *Replica {
	r := s.replica
	r.order = s.order.Start(g)
	r.running.Go(r.send)
	r.running.Go(func() {
		for range g.Views(r.life) { // until the membership ends
		}
		if err := r.order.Err(); err != nil {
			r.end(err)
		}
	})
	return r
}

// Cancel ends a replica that is not started, because the program has not become a member.
func (s *Shared) Cancel() {
	s.order.Cancel()
	s.replica.end(pleach.ErrClosed)
}
