package lifecycle

import (
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// election chooses the member that begins with the state of a group when no member has
// it any more. Every member of a view offers what it has to the lowest rank, by a number:
// the highest wins, and of several the lowest rank. A member that has just got the state,
// and has not said so in a view yet, offers [HasState]. A new view begins the election
// again, so a member that was chosen before is chosen again as long as it lives.
type election struct {
	view   *membership.View // nil: some member has the state
	offers map[protocol.Rank]uint64
}

// HasState is the offer of a member that has the state of the group.
const HasState = ^uint64(0)

// begin begins the election in a view, or ends it if the view is nil.
func (e *election) begin(v *membership.View) {
	*e = election{view: v, offers: make(map[protocol.Rank]uint64)}
}

// number returns the number of the view with an election, or 0.
func (e *election) number() uint64 {
	if e.view == nil {
		return 0
	}
	return e.view.Number
}

// offer takes the offer of a member. If it is the last one, it returns the member that
// begins.
func (e *election) offer(view uint64, from protocol.Rank, number uint64) *membership.Member {
	if e.view == nil || e.view.Number != view || !e.view.Has(from) {
		return nil
	}
	e.offers[from] = number
	if len(e.offers) < e.view.Members.Len() {
		return nil
	}
	var chosen *membership.Member
	for _, m := range e.view.Members.All() {
		if chosen == nil || e.offers[m.Rank] > e.offers[chosen.Rank] {
			chosen = m
		}
	}
	return chosen
}
