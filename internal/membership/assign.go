package membership

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// assigner assigns ranks to joiners, on behalf of a proposer that composes a value.
type assigner struct {
	slots    protocol.Rank
	occupied []*Member // by rank; nil: a hole
	last     []*Member // the present or last member of a rank in the view before; nil: none
	count    int
}

func newAssigner(before *View) *assigner {
	a := &assigner{slots: before.Slots, occupied: make([]*Member, before.Slots), last: make([]*Member, before.Slots)}
	for _, list := range [][]Member{before.Former, before.Members} {
		for i := range list {
			a.last[list[i].Rank] = &list[i]
		}
	}
	return a
}

// FirstView returns the first view of members that begin a group together. It assigns
// their ranks.
func FirstView(members []Member) (View, error) {
	v := View{Number: 1, Slots: protocol.Rank(len(members)), Members: slices.Clone(members)}
	a := newAssigner(&View{Slots: v.Slots})
	for i := range v.Members {
		if !a.assign(&v.Members[i]) {
			return View{}, fmt.Errorf("%w: identity %q is there twice, or there are too many", ErrView, v.Members[i].Identity)
		}
	}
	slices.SortFunc(v.Members, byRank)
	return v, v.check()
}

// assign gives a joiner its rank. It reports false if its identity is taken, or if no
// slot is left.
func (a *assigner) assign(j *Member) bool {
	if slices.ContainsFunc(a.occupied, func(m *Member) bool { return m != nil && m.Identity == j.Identity }) {
		return false
	}
	j.Rank = a.rankFor(j)
	if j.Rank == MaxSlots {
		return false
	}
	if j.Rank == a.slots {
		a.slots++
		a.occupied, a.last = append(a.occupied, nil), append(a.last, nil)
	}
	a.occupied[j.Rank] = j
	a.count++
	return true
}

// rankFor returns the joiner's old rank if that is a hole; else a hole whose ring
// neighbors are of other failure domains; else any hole; else a new slot.
func (a *assigner) rankFor(j *Member) protocol.Rank {
	for r, last := range a.last {
		if a.occupied[r] == nil && last != nil && last.Identity == j.Identity {
			return protocol.Rank(r)
		}
	}
	hole := a.slots
	for r := range a.slots {
		if a.occupied[r] != nil {
			continue
		}
		if !a.besideDomain(r, j.Domain) {
			return r
		}
		hole = min(hole, r)
	}
	return hole
}

// besideDomain reports whether a ring neighbor of rank r, the next member on either
// side, is of the given failure domain.
func (a *assigner) besideDomain(r protocol.Rank, domain string) bool {
	if domain == "" || a.count == 0 {
		return false
	}
	for _, step := range []protocol.Rank{1, a.slots - 1} {
		at := (r + step) % a.slots
		for a.occupied[at] == nil {
			at = (at + step) % a.slots
		}
		if a.occupied[at].Domain == domain {
			return true
		}
	}
	return false
}

// minCompact is the smallest number of holes that compaction is worth.
const minCompact = 8

// compact returns the number of slots without trailing holes, if more than half of
// the slots are holes. Only trailing holes go: the rank of a member never changes.
func (a *assigner) compact() protocol.Rank {
	slots := a.slots
	if holes := int(slots) - a.count; holes < minCompact || 2*holes <= int(slots) {
		return slots
	}
	for slots > 1 && a.occupied[slots-1] == nil {
		slots--
	}
	return slots
}
