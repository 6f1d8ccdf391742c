package lifecycle

import (
	"errors"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// A process that a view has admitted begins the view on its own if no member of the view
// has messages. Otherwise it enters the view at a member that has them. A member that was
// started again, before the view or since, is a restarted voter, and may wait for this process. One
// whose address refuses connections is dead. One that is unresponsive may have messages, so
// this process waits for it for a while. Then it has to hold its place in the view, so that the
// others can continue without the unresponsive one.
//
// The processes that were admitted together may have crashed since, and have lost their
// disks or left: a vote of an old ballot can decide a view long after it was proposed. So a
// process begins a view only if enough of its members have shown their nonces to decide the
// next one. Otherwise it holds its place, which it gives up if their votes are lost.

// A silent member is asked again after a pause, so many times.
const (
	viewPause = 50 * millisecond
	viewTries = 10
)

// viewing asks the members of a view whether they have messages.
type viewing struct {
	due     protocol.Time
	tries   int
	members []*membership.Member // that have yet to answer
	silent  []*membership.Member // that have not answered in this try
	asked   map[string]*membership.Member
}

// begin begins with the members that have not joined with the view.
func (v *viewing) begin(now protocol.Time, view *membership.View) {
	*v = viewing{due: now}
	for _, m := range view.Members.All() {
		if m.Incarnation != view.Number {
			v.members = append(v.members, m)
		}
	}
}

// runViews asks the members that have yet to answer, or begins the view.
func (m *Machine) runViews() {
	v := &m.views
	if v.due > m.now {
		return
	}
	v.due = protocol.Never // when all have answered
	switch {
	case len(v.members) == 0 && m.mayDecide():
		// Its streams begin where the view does, as those of a process do that a member lets in.
		// Otherwise it would want messages of views before, which others still know of.
		d := m.place.Decisions()
		m.become(Membership{Self: m.place.Self, View: m.place.View, Start: d.Cut(), Decisions: d, Elsewhere: m.elsewhere()})
	case v.tries == viewTries:
		m.hold(m.place)
	default:
		v.tries++
		if len(v.members) == 0 {
			v.due = m.now + viewPause // for introductions
		}
		v.asked = make(map[string]*membership.Member)
		for _, o := range v.members {
			address := m.Address(o)
			v.asked[address] = o
			m.ask(address, control.View{}, viewTimeout)
		}
	}
}

// mayDecide reports whether enough members of the view have shown that they can vote. Half of them
// hold their places: only voters ask an arbiter.
func (m *Machine) mayDecide() bool {
	tie := membership.LowestDecides
	if m.config.Arbiter {
		tie = membership.NoneDecides
	}
	return m.place.View.CanDecideWithout(func(o *membership.Member) bool {
		return o.Rank != m.place.Self.Rank && !m.search.votes(o)
	}, tie)
}

// viewReplied takes the answer of a member: it has messages, is a restarted voter, is dead, or is
// silent.
func (m *Machine) viewReplied(address string, r Reply) {
	v := &m.views
	of := v.asked[address]
	if of == nil {
		return
	}
	delete(v.asked, address)
	var again *control.Restarted
	switch {
	case r.Err == nil:
		m.enterView()
		return
	case errors.As(r.Err, &again) && again.Rank == of.Rank && again.Incarnation == of.Incarnation:
		m.search.voter(of)
	case r.Gone:
	default:
		v.silent = append(v.silent, of)
	}
	if len(v.asked) > 0 {
		return
	}
	v.members, v.silent, v.due = v.silent, nil, m.now
	if len(v.members) > 0 {
		v.due += viewPause
	}
}

// enterView asks the members of the view that has admitted this process to let it in.
func (m *Machine) enterView() {
	m.enter(entering)
	m.until = m.now + enterTimeout
	m.joiner.begin(m.now, m.targets(), 0)
	m.actions = append(m.actions, Stand{})
}
