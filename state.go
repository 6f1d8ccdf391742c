package pleach

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/pleach-go/pleach/internal/base/wire"
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
	lacking  bool                        // this process has yet to get the state
	arrived  *snapshot                   // nil: not yet
	views    map[uint64]*membership.View // nil: the program is not told where views begin
	// election is the choice of the member to begin with, if no member has the state, and
	// offering says that this one has yet to make its offer.
	election lifecycle.Election
	offering bool

	// Of the goroutine that receives:
	since uint64                  // the view where the state begins: messages of earlier ones are in it
	sent  map[unicast.Caller]bool // the processes that this one has sent the state
}

// snapshot is a state on its way.
type snapshot struct {
	from protocol.Rank
	view uint64
	data []byte
	own  bool // the program begins with the state that it has
}

// makeReplica makes a member that has the state, if it has begun the group alone, or lacks it.
func (r *replica) makeReplica(v *membership.View) {
	if r.config.State == nil && r.config.OnView == nil {
		return
	}
	r.lacking, r.first = r.config.State != nil && !r.self.Synced, v.Number
	r.views, r.sent = make(map[uint64]*membership.View), make(map[unicast.Caller]bool)
	r.checkState(v)
}

// checkState keeps a view for when the program comes to it. If no member has the state
// any more, they elect one to begin with.
func (r *replica) checkState(v *membership.View) {
	if r.views != nil {
		r.views[v.Number] = v
	}
	if r.config.State == nil {
		return
	}
	r.election.Begin(nil)
	for _, m := range v.Members.All() {
		if m.Synced {
			r.offering = false
			return
		}
	}
	r.election.Begin(v)
	r.offering = true
}

// offerState offers the state of this process where no member is known to have one. If the
// process has none, its program is asked for it. It is called within node.Do.
func (r *replica) offerState() {
	if r.offering && (!r.lacking || r.arrived != nil) {
		r.sendOffer(r.election.View(), lifecycle.HasState)
	}
}

// sendOffer makes an offer to the lowest rank, unless there is another view meanwhile.
func (r *replica) sendOffer(view, number uint64) {
	if v := r.machine.View(); r.offering && r.election.View() == view && v.Number == view {
		r.offering = false
		to := v.Members.At(0)
		r.direct.channel.SendState(to.Rank, to.Incarnation, view, unicast.Offered, wire.AppendUint64(nil, number))
	}
}

// takeState takes a state that has arrived, within node.Do. A process needs one.
func (r *replica) takeState(from protocol.Rank, view uint64, s unicast.Status, data []byte) {
	switch {
	case r.config.State == nil:
	case s == unicast.Offered:
		d := wire.NewDecoder(data)
		if m := r.election.Offer(view, from, d.Uint64()); m != nil {
			if view == member.FirstIncarnation {
				r.log.Info("the group begins with the state of one member", "view", view, "member", m.Rank)
			} else {
				r.log.Warn("no member has the state of the group any more: it begins with what one of them offers", "view", view, "member", m.Rank)
			}
			r.direct.channel.SendState(m.Rank, m.Incarnation, view, unicast.Chosen, nil)
		}
	case !r.lacking || r.arrived != nil:
	case s == unicast.Chosen && view == r.election.View():
		r.arrived = &snapshot{view: view, own: true}
	case s == unicast.Chosen:
	case s != unicast.OK:
		r.end(&StateError{From: int(from), View: view, Err: errors.New(string(data))})
	default:
		r.arrived = &snapshot{from: from, view: view, data: data}
	}
}

// restoreState gives the program the state, if it has arrived, or asks it for an offer. It
// reports false if the program has to wait for the state.
func (r *replica) restoreState() bool {
	if r.config.State == nil || r.since > 0 {
		return true
	}
	var s *snapshot
	var lacking bool
	var offering uint64
	if r.node.Do(func(protocol.Time) {
		s, lacking = r.arrived, r.lacking
		if r.offering {
			offering = r.election.View()
		}
	}) != nil {
		return false
	}
	switch {
	case !lacking:
		r.since = member.FirstIncarnation
		return true
	case s == nil:
		r.askOffer(offering)
		return false
	case !s.own:
		if err := r.config.State.Restore(bytes.NewReader(s.data)); err != nil {
			r.end(&StateError{From: int(s.from), View: s.view, Err: err})
			return false
		}
	}
	r.since = s.view
	return r.node.Do(func(now protocol.Time) {
		r.lacking, r.arrived = false, nil
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
	_ = r.node.Do(func(protocol.Time) { r.sendOffer(view, number) })
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

// takeKept returns a view that was kept for when the program comes to it, or nil.
func (r *replica) takeKept(number uint64) (v *membership.View) {
	_ = r.node.Do(func(protocol.Time) {
		v = r.views[number]
		delete(r.views, number)
	})
	return v
}

// takeView returns a view that begins, for the program, or nil if it was of a membership that
// has ended.
func (r *replica) takeView(number uint64) *View {
	if v := r.takeKept(number); v != nil {
		return viewOf(v)
	}
	return nil
}

// provideState sends the state, where a view begins, to its members that lack it. The
// member with the lowest rank that has it does so, once to each. If it dies, the view
// without it makes the next one do so.
func (r *replica) provideState(number uint64) {
	v := r.takeKept(number)
	if v == nil || number < r.since {
		return
	}
	var lacking []*membership.Member
	provider := protocol.NoRank
	for _, m := range v.Members.All() {
		switch {
		case !m.Synced:
			if !r.sent[unicast.Caller{Rank: m.Rank, Incarnation: m.Incarnation}] {
				lacking = append(lacking, m)
			}
		case provider == protocol.NoRank:
			provider = m.Rank
		}
	}
	if provider != r.self.Rank || len(lacking) == 0 {
		return
	}
	for c := range r.sent {
		if !v.Holds(c.Rank, c.Incarnation) {
			delete(r.sent, c)
		}
	}
	status, data := r.snapshot()
	_ = r.node.Do(func(protocol.Time) {
		for _, m := range lacking {
			r.sent[unicast.Caller{Rank: m.Rank, Incarnation: m.Incarnation}] = true
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
