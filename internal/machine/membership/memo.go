package membership

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
)

// memo caches what was last derived from sets, views and values. A derivation costs
// time and memory in proportion to the group, a change needs it several times, and it
// is the same for all members of a view. So machines of one process share the memo,
// see [Machine.Sibling]. A derived value is never modified.
type memo struct {
	before View
	value  *value
	next   *View
	err    error // why next is not valid

	root protocol.Rank   // of the broadcast of value
	cast Members         // its participants; empty: not known yet
	plan *broadcast.Plan // nil: not planned yet
}

// Sibling returns the machine of another member of m's view, with m's config. The
// two share what is the same for both, which is most of a large view: a simulator
// of many members needs that. The two must not be used concurrently.
func (m *Machine) Sibling(self protocol.Rank, log Log) (*Machine, error) {
	member, ok := m.view.Member(self)
	if !ok {
		return nil, fmt.Errorf("%w: rank %d is not in view %d", ErrView, self, m.view.Number)
	}
	c := m.config
	c.Self, c.View, c.Log = member, m.view, log
	return newMachine(c, m.memo), nil
}

// apply returns the view that follows the current one if v is decided.
func (m *Machine) apply(v *value) (*View, error) {
	if k := m.memo; k.value == nil || !k.before.same(&m.view) || !k.value.equal(v) {
		next, err := v.apply(&m.view, m.named)
		*k = memo{before: m.view, value: v, next: next, err: err}
	}
	return m.memo.next, m.memo.err
}

// same reports whether two views are one in memory. Comparing numbers would suffice,
// but if members ever disagreed, sharing must not hide it.
func (v *View) same(w *View) bool {
	return v.Number == w.Number && &v.Members.chunks[0] == &w.Members.chunks[0]
}

func (v *value) equal(w *value) bool {
	return v == w || v.number == w.number && v.version == w.version && v.slots == w.slots &&
		bytes.Equal(v.removed, w.removed) && slices.Equal(v.reasons, w.reasons) &&
		slices.Equal(v.added, w.added) && slices.Equal(v.changed, w.changed) && slices.Equal(v.cut, w.cut)
}
