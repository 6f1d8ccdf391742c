package lifecycle

import (
	"errors"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/unicast"
	"github.com/pleach-go/pleach/protocol"
)

// Replica decides how a member gets the state of its group, and to whom it gives it. It does no
// I/O, and is not safe for concurrent use.
//
// In:
//   - [Replica.Installed] for a new view.
//   - [Replica.Received] for what another member says about the state.
//   - [Replica.Begins] when the program has received all messages of the views before one.
//   - [Replica.Offer] with what the program can begin with, in the view of [Replica.OfferView].
//   - [Replica.Restored] when the program has the state of [Replica.Arrived].
//
// Out: the results of these, and after each step [Replica.StateOffer].
//
// A member that joins lacks the state. Where the view that has admitted it begins in the messages,
// the lowest rank that has the state writes a snapshot for it, once. If that member dies, the view
// without it makes the next one do so. If no member of a view has the state, they elect one to
// begin with; see election.
type Replica struct {
	self     membership.Member
	views    map[uint64]*membership.View // that the program has yet to reach
	election election
	offering bool // this member has yet to make its offer
	lacking  bool
	arrived  *Transfer // nil: not yet
	since    uint64
	sent     map[incarnation]bool // processes that have got the state from this one
}

// Transfer is a state on its way to the program.
type Transfer struct {
	From protocol.Rank
	View uint64 // where it was taken: messages of earlier views are in it
	Data []byte
	Own  bool // the program begins with the state that it has
}

// NewReplica returns the machine of a process that enters a view. It has the state if the view says
// so.
func NewReplica(self membership.Member, v *membership.View) *Replica {
	r := &Replica{
		self: self, views: make(map[uint64]*membership.View), lacking: !self.Synced, sent: make(map[incarnation]bool),
	}
	if !r.lacking {
		r.since = member.FirstIncarnation
	}
	r.Installed(v)
	return r
}

// Installed takes a new view. If no member has the state any more, an election begins.
func (r *Replica) Installed(v *membership.View) {
	r.views[v.Number] = v
	r.election.begin(nil)
	r.offering = false
	for _, m := range v.Members.All() {
		if m.Synced {
			return
		}
	}
	r.election.begin(v)
	r.offering = true
}

// Lacking reports whether the program has yet to get the state, and Arrived returns the state that
// has arrived for it, or nil.
func (r *Replica) Lacking() bool      { return r.lacking }
func (r *Replica) Arrived() *Transfer { return r.arrived }

// Since returns the view where the state of the program begins: messages of earlier views are in
// it. It is 0 while the program has none.
func (r *Replica) Since() uint64 { return r.since }

// OfferView returns the view in which the program has yet to say what it can begin with, or 0.
func (r *Replica) OfferView() uint64 {
	if !r.offering {
		return 0
	}
	return r.election.number()
}

// Offer makes an offer in a view, and returns the member that it goes to, or nil if the view is
// over or has an offer.
func (r *Replica) Offer(view, number uint64) (to *membership.Member, offer []byte) {
	if view == 0 || r.OfferView() != view {
		return nil, nil
	}
	r.offering = false
	return r.election.view.Members.At(0), wire.AppendUint64(nil, number)
}

// StateOffer makes the offer of a member that has the state, where no member is known to have one.
func (r *Replica) StateOffer() (to *membership.Member, view uint64, offer []byte) {
	if r.lacking && r.arrived == nil {
		return nil, 0, nil
	}
	view = r.OfferView()
	to, offer = r.Offer(view, HasState)
	return to, view, offer
}

// Received takes what a member says about the state of a view. It returns the member that the
// election has chosen, if that is over now, or the error of a member that could not write the state.
func (r *Replica) Received(
	from protocol.Rank, view uint64, s unicast.Status, data []byte,
) (chosen *membership.Member, err error) {
	switch {
	case s == unicast.Offered:
		d := wire.NewDecoder(data)
		return r.election.offer(view, from, d.Uint64()), nil
	case !r.lacking || r.arrived != nil:
	case s == unicast.Chosen && view == r.election.number():
		r.arrived = &Transfer{From: from, View: view, Own: true}
	case s == unicast.Chosen:
	case s != unicast.OK:
		return nil, errors.New(string(data))
	default:
		r.arrived = &Transfer{From: from, View: view, Data: data}
	}
	return nil, nil
}

// Restored takes that the program has the state that has arrived.
func (r *Replica) Restored() {
	r.lacking, r.since, r.arrived = false, r.arrived.View, nil
}

// Begins takes that the program has received all messages of the views before one, and returns the
// members that this one sends the state now.
func (r *Replica) Begins(view uint64) (lacking []*membership.Member) {
	v := r.views[view]
	delete(r.views, view)
	if v == nil || r.lacking || view < r.since {
		return nil
	}
	provider := protocol.NoRank
	for _, m := range v.Members.All() {
		switch {
		case !m.Synced && !r.sent[incarnation{m.Rank, m.Incarnation}]:
			lacking = append(lacking, m)
		case m.Synced && provider == protocol.NoRank:
			provider = m.Rank
		}
	}
	if provider != r.self.Rank {
		return nil
	}
	for c := range r.sent {
		if !v.Holds(c.rank, c.number) {
			delete(r.sent, c)
		}
	}
	for _, m := range lacking {
		r.sent[incarnation{m.Rank, m.Incarnation}] = true
	}
	return lacking
}
