package membership

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
)

// memo is what was last worked out from sets, views and values. It takes time and
// memory in proportion to the group, a change asks for it several times, and it
// is the same for all who are in the view: so machines of one process share it,
// see [Machine.Sibling]. Nothing in it is changed once made.
type memo struct {
	members set   // who take part in a ballot
	indices []int // the same as a list

	before View
	value  *value
	next   *View
	err    error // why there is no next

	root  protocol.Rank   // of the value's broadcast
	ranks []protocol.Rank // who take part in it, by their places
	plan  *broadcast.Plan // nil: not made yet
}

// Sibling makes the machine of another member of m's view, with m's settings. The
// two share what is the same for both, which is most of a large view: a simulator
// of many members needs that. Neither may be used while the other is.
func (m *Machine) Sibling(self protocol.Rank, log Log) (*Machine, error) {
	member, ok := m.view.Member(self)
	if !ok {
		return nil, fmt.Errorf("%w: rank %d is not in view %d", ErrView, self, m.view.Number)
	}
	c := m.config
	c.Self, c.View, c.Log = member, m.view, log
	return newMachine(c, m.memo), nil
}

// apply makes the view that a value makes of the present one.
func (m *Machine) apply(v *value) (*View, error) {
	if k := m.memo; k.value == nil || !k.before.same(&m.view) || !k.value.equal(v) {
		next, err := v.apply(&m.view)
		*k = memo{members: k.members, indices: k.indices, before: m.view, value: v, next: next, err: err}
	}
	return m.memo.next, m.memo.err
}

// list returns the indices of those who take part in a ballot.
func (k *memo) list(members set) []int {
	if k.indices == nil || !bytes.Equal(k.members, members) {
		k.members, k.indices = slices.Clone(members), members.each()
	}
	return k.indices
}

// same reports whether two views are one in memory. Their numbers should do, but
// if members ever disagreed, sharing must not hide it.
func (v *View) same(w *View) bool {
	return v.Number == w.Number && len(v.Members) == len(w.Members) && &v.Members[0] == &w.Members[0]
}

func (v *value) equal(w *value) bool {
	return v == w || v.number == w.number && v.slots == w.slots && bytes.Equal(v.removed, w.removed) &&
		slices.Equal(v.added, w.added) && slices.Equal(v.cut, w.cut)
}
