package membership

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// value is what Paxos decides for one view number: the next view, as a difference to
// the one before, and the cut between the two.
type value struct {
	number  uint64        // of the next view
	slots   protocol.Rank // of the next view
	removed set           // of the members of the view before
	added   []Member      // in ascending order
	cut     []Position    // in ascending order of roots
}

// apply returns the new view. It rejects a value that no correct member proposes.
func (v *value) apply(before *View) (*View, error) {
	if v.number != before.Number+1 {
		return nil, fmt.Errorf("%w: view %d does not follow view %d", ErrView, v.number, before.Number)
	}
	if !v.removed.fits(len(before.Members)) {
		return nil, fmt.Errorf("%w: removals for another view than %d", ErrView, before.Number)
	}
	next := &View{Number: v.number, Slots: v.slots, Members: make([]Member, 0, len(before.Members)+len(v.added))}
	kept := 0
	for _, i := range v.removed.each() { // few: the members between them are copied at once
		next.Members = append(next.Members, before.Members[kept:i]...)
		kept = i + 1
	}
	next.Members = append(next.Members, before.Members[kept:]...)
	if len(v.added) > 0 {
		for i := range v.added {
			if v.added[i].Incarnation != v.number {
				return nil, fmt.Errorf("%w: view %d admits %q as incarnation %d", ErrView, v.number, v.added[i].Identity, v.added[i].Incarnation)
			}
		}
		next.Members = append(next.Members, v.added...)
		slices.SortFunc(next.Members, byRank)
	}
	next.Former = v.former(before, next)
	if len(v.added) == 0 && v.slots == before.Slots && len(next.Members) > 0 {
		return next, nil // a subset of a checked view; most changes are of this kind
	}
	return next, next.check()
}

// former returns the last members of the new view's holes: those of the view before,
// and those removed now. A process that is back, at whatever rank, is no longer
// remembered. It is in added, since no identity was both member and former before.
func (v *value) former(before, next *View) []Member {
	var former []Member
	back := make(map[string]bool, len(v.added))
	for _, m := range v.added {
		back[m.Identity] = true
	}
	remember := func(m Member) {
		if m.Rank < v.slots && !next.Has(m.Rank) && !back[m.Identity] {
			former = append(former, m)
		}
	}
	for _, m := range before.Former {
		remember(m)
	}
	for _, i := range v.removed.each() {
		remember(before.Members[i])
	}
	slices.SortFunc(former, byRank)
	return former
}

func byRank(a, b Member) int { return cmp.Compare(a.Rank, b.Rank) }
