package lifecycle

import (
	"cmp"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// A process that is started again may be at another address than the view says, until a view has
// admitted it. A process that does not know that finds the member gone. A member that lives on while most
// others are started again elsewhere would suspect them for ever, and with its suspicions there is
// no quorum. So members learn where restarted voters are, as restarted voters do of each other.

// Elsewhere has the addresses of members that are not where the view has them. It does not change:
// a process that learns of another one has another Elsewhere.
type Elsewhere map[incarnation]string

// incarnation names one process of a group: no other one has had its rank with that number.
type incarnation struct {
	rank   protocol.Rank
	number uint64
}

// Address returns where the process of a member is.
func (e Elsewhere) Address(m *membership.Member) string {
	return cmp.Or(e[incarnation{m.Rank, m.Incarnation}], m.Address)
}

// Met returns what a member of a view knows after a process has introduced itself, and reports
// whether that is new. It believes the process only if it cannot reach the member of that ID: two
// processes may have one ID by mistake.
func (e Elsewhere) Met(v *membership.View, unreachable []protocol.Rank, c control.Contact) (Elsewhere, bool) {
	m := v.Named(c.ID)
	if m == nil || c.Address == "" || c.Address == e.Address(m) || !slices.Contains(unreachable, m.Rank) {
		return e, false
	}
	next := Elsewhere{incarnation{m.Rank, m.Incarnation}: c.Address}
	for other, address := range e {
		if other.rank != m.Rank && v.Holds(other.rank, other.number) {
			next[other] = address
		}
	}
	return next, true
}

// elsewhere returns the members whose restarted voters are not where the view has them. One that the view has
// just admitted is where it says.
func (m *Machine) elsewhere() Elsewhere {
	e := make(Elsewhere)
	for _, o := range m.place.View.Members.All() {
		if address := m.Address(o); o.Incarnation != m.place.View.Number && address != o.Address {
			e[incarnation{o.Rank, o.Incarnation}] = address
		}
	}
	return e
}
