package pleach

import (
	"bytes"
	"fmt"
	"io"

	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/unicast"
	"github.com/pleach-go/pleach/protocol"
)

// State is what the messages of a group come to, and all its members keep: a table, a
// configuration, a count. A process that joins gets it from another member, exactly as it
// is where the process's messages begin.
//
// With Config.State, Messages or OnMessage also has this process's own broadcasts, at their place
// among the others: a program changes its state by what it receives only, one message after
// the other. If the messages of different members may be applied in different orders with
// the same result, all members that have received the same messages have the same state.
//
// Subscriptions are no part of it: what a program receives from [Subscription.Messages] has no place
// among the messages that Snapshot is called between. A state that depends on messages with
// topics needs Config.OnMessage, which gets all of them in order.
//
// Both methods are called by the goroutine that receives, between two messages. So only one
// goroutine may receive, and another one broadcasts: while its own inbox is full, Broadcast
// blocks. A process that comes back (Rejoin, or a restart) is a joiner.
type State interface {
	// Snapshot writes the state. It is called when a view with a joiner begins: all
	// messages of the views before have been received, and none of later ones.
	Snapshot(w io.Writer) error
	// Restore replaces the state by one that another member has written. It is called
	// before this process receives its first message.
	Restore(r io.Reader) error
}

// StateOffer is a [State] that may outlast its processes, such as on their disks. If members begin
// a group together, or all members that had the state of the group are gone, the group begins with
// the state of the process that offers the highest number, and all others Restore that. Of equal
// numbers, or if no State is a StateOffer, it is the state of the lowest rank, as it is.
type StateOffer interface {
	State
	// OfferState returns how new the state is that this process can begin with. It is called
	// as Restore is, and may be called again before the group has begun.
	OfferState() uint64
}

// StateError is why this process has not got the state of its group. It ends the
// membership.
type StateError struct {
	// From is the rank of the member that has sent the state, or should have.
	From int
	// View is where the state was taken.
	View uint64
	Err  error
}

func (e *StateError) Error() string {
	return fmt.Sprintf("pleach: the state of view %d from rank %d: %v", e.View, e.From, e.Err)
}

// Unwrap returns the cause.
func (e *StateError) Unwrap() error { return e.Err }

// replica is what a member knows of the state of its group. Its fields are used within
// node.Do, but those of the goroutine that receives.
type replica struct {
	*core
	receiver *receiver
	direct   *directs
	gap      *GapError                   // of this membership; nil: it is the first
	first    uint64                      // view of this membership
	state    *lifecycle.Replica          // nil: the program keeps no state
	views    map[uint64]*membership.View // nil: the program is not told where views begin

	// Of the goroutine that receives:
	since uint64 // the view where the state begins: messages of earlier ones are in it
}

// makeReplica makes a member that has the state, if it has begun the group alone, or lacks it.
func (r *replica) makeReplica(v *membership.View) {
	r.first = v.Number
	switch {
	case r.config.State != nil:
		r.state = lifecycle.NewReplica(r.self, v)
	case r.config.OnView != nil:
		r.views = map[uint64]*membership.View{v.Number: v}
	}
}

// installed takes a new view, within node.Do.
func (r *replica) installed(v *membership.View) {
	switch {
	case r.state != nil:
		r.state.Installed(v)
	case r.views != nil:
		r.views[v.Number] = v
	}
}

// lacking reports whether the program has yet to get the state, and expected whether the program
// has something to do for it, within node.Do.
func (r *replica) lacking() bool  { return r.state != nil && r.state.Lacking() }
func (r *replica) expected() bool { return r.state.Arrived() != nil || r.state.OfferView() > 0 }

// offerState offers the state of this process where no member is known to have one. If the
// process has none, its program is asked for it. It is called within node.Do.
func (r *replica) offerState() {
	if r.state == nil {
		return
	}
	if to, view, offer := r.state.StateOffer(); to != nil {
		r.direct.channel.SendState(to.Rank, to.Incarnation, view, unicast.Offered, offer)
	}
}

// takeState takes what a member says about the state, within node.Do.
func (r *replica) takeState(from protocol.Rank, view uint64, s unicast.Status, data []byte) {
	if r.state == nil {
		return
	}
	m, err := r.state.Received(from, view, s, data)
	switch {
	case err != nil:
		r.end(&StateError{From: int(from), View: view, Err: err})
		return
	case m == nil:
		return
	case view == member.FirstIncarnation:
		r.log.Info("the group begins with the state of one member", "view", view, "member", m.Rank)
	default:
		r.log.Warn("no member has the state of the group any more: it begins with what one of them offers",
			"view", view, "member", m.Rank)
	}
	r.direct.channel.SendState(m.Rank, m.Incarnation, view, unicast.Chosen, nil)
}

// restoreState gives the program the state, if it has arrived, or asks it for an offer. It
// reports false if the program has to wait for the state.
func (r *replica) restoreState() bool {
	if r.state == nil || r.since > 0 {
		return true
	}
	var s *lifecycle.Transfer
	var offering uint64
	err := r.node.Do(func(protocol.Time) {
		s, r.since, offering = r.state.Arrived(), r.state.Since(), r.state.OfferView()
	})
	if err != nil {
		return false
	}
	switch {
	case r.since > 0:
		return true
	case s == nil:
		r.askOffer(offering)
		return false
	case !s.Own:
		if err := r.config.State.Restore(bytes.NewReader(s.Data)); err != nil {
			r.end(&StateError{From: int(s.From), View: s.View, Err: err})
			return false
		}
	}
	r.since = s.View
	return r.node.Do(func(now protocol.Time) {
		r.state.Restored()
		r.receiver.announceCurrent()
		r.receiver.progress.Complete(r.first)
		r.receiver.wakeTopics()
		r.changed.Notify()
		r.machine.SetSynced(now)
	}) == nil
}

// askOffer asks the program for its offer in a view; 0: there is no need.
func (r *replica) askOffer(view uint64) {
	if view == 0 {
		return
	}
	number := uint64(0)
	if o, ok := r.config.State.(StateOffer); ok {
		number = min(o.OfferState(), lifecycle.HasState-1)
	}
	_ = r.node.Do(func(protocol.Time) {
		if to, offer := r.state.Offer(view, number); to != nil {
			r.direct.channel.SendState(to.Rank, to.Incarnation, view, unicast.Offered, offer)
		}
	})
}

// forProgram reports whether the program gets an item from Messages or OnMessage. The others are
// messages that the state has, and markers that it handles.
func (r *replica) forProgram(i *item) bool {
	switch {
	case i.current:
		r.config.OnCurrent()
		return false
	case i.begins && r.config.State == nil:
		if v := r.takeView(i.View); v != nil {
			r.config.OnView(*v)
		}
		return false
	case i.begins:
		r.provideState(i.View)
		return false
	}
	return r.config.State == nil || i.Direct || i.gap != nil || i.View >= r.since
}

// takeView returns a view that begins, for the program, or nil if it was of a membership that
// has ended.
func (r *replica) takeView(number uint64) (view *View) {
	_ = r.node.Do(func(protocol.Time) {
		if v := r.views[number]; v != nil {
			view = viewOf(v)
		}
		delete(r.views, number)
	})
	return view
}

// provideState sends the state, where a view begins, to those of its members that this one gives
// it to.
func (r *replica) provideState(number uint64) {
	var lacking []*membership.Member
	_ = r.node.Do(func(protocol.Time) { lacking = r.state.Begins(number) })
	if len(lacking) == 0 {
		return
	}
	status, data := r.snapshot()
	_ = r.node.Do(func(protocol.Time) {
		for _, m := range lacking {
			r.direct.channel.SendState(m.Rank, m.Incarnation, number, status, data)
		}
	})
}

// snapshot has the program write its state.
func (r *replica) snapshot() (unicast.Status, []byte) {
	var b bytes.Buffer
	err := r.config.State.Snapshot(&b)
	if err == nil {
		err = r.direct.tooLongDirect(b.Len())
	}
	if err != nil {
		r.log.Error("no snapshot", "error", err)
		text := err.Error()
		return unicast.Failed, []byte(text[:min(len(text), maxErrorText)])
	}
	return unicast.OK, b.Bytes()
}
