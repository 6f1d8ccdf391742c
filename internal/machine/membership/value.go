package membership

import (
	"cmp"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// value is what Paxos decides for one view number: the next view, as a difference to
// the one before, and the cut between the two.
type value struct {
	number  uint64        // of the next view
	version uint16        // of the next view
	slots   protocol.Rank // of the next view
	removed set           // of the members of the view before
	reasons []reason      // why, in the order of removed
	added   []Member      // in ascending order
	changed []Member      // that stay, with another meta; in ascending order
	cut     []Position    // in ascending order of roots
}

// apply returns the new view. It rejects a value that no correct member proposes. The
// function named returns the index of the member with an identity in the view before.
// Apply looks at the members that come and go only: the view before is valid.
func (v *value) apply(before *View, named func(identity string) (int, bool)) (*View, error) {
	if v.number != before.Number+1 {
		return nil, fmt.Errorf("%w: view %d does not follow view %d", ErrView, v.number, before.Number)
	}
	if !v.removed.fits(before.Members.Len()) {
		return nil, fmt.Errorf("%w: reasons for another view than %d", ErrView, before.Number)
	}
	if v.slots > MaxSlots {
		return nil, fmt.Errorf("%w: %d slots: choose 1 to %d", ErrView, v.slots, MaxSlots)
	}
	stay, joined := before.Members.change(before.ranksOf(v.removed)), v.identities()
	if len(joined) < len(v.added) {
		return nil, fmt.Errorf("%w: view %d admits an identity twice", ErrView, v.number)
	}
	for i := range v.added {
		if err := v.checkAdded(i, stay, named); err != nil {
			return nil, err
		}
	}
	for i := range v.changed {
		if err := v.checkChanged(i, stay); err != nil {
			return nil, err
		}
	}
	next := &View{Number: v.number, Version: v.version, Slots: v.slots, Members: stay.change(nil, v.added...).change(nil,
		v.changed...)}
	n := next.Members.Len()
	if n == 0 {
		return nil, fmt.Errorf("%w: view %d has no members", ErrView, v.number)
	}
	if last := next.Members.At(n - 1).Rank; last >= v.slots {
		return nil, fmt.Errorf("%w: rank %d is out of place in view %d of %d slots", ErrView, last, v.number, v.slots)
	}
	if err := v.checkVersion(before, next); err != nil {
		return nil, err
	}
	if err := next.checkVoters(); err != nil {
		return nil, err
	}
	next.Former = v.former(before, next, joined)
	return next, nil
}

// identities returns those of the added members.
func (v *value) identities() map[string]bool {
	identities := make(map[string]bool, len(v.added))
	for i := range v.added {
		identities[v.added[i].Identity] = true
	}
	return identities
}

// ranksOf returns the ranks of a set of members.
func (v *View) ranksOf(s set) []protocol.Rank {
	indices := s.each()
	ranks := make([]protocol.Rank, len(indices))
	for k, i := range indices {
		ranks[k] = v.Members.At(i).Rank
	}
	return ranks
}

// checkAdded returns an error if an added member is invalid, or conflicts with one that stays.
func (v *value) checkAdded(i int, stay Members, named func(identity string) (int, bool)) error {
	m := &v.added[i]
	if m.Incarnation != v.number {
		return fmt.Errorf("%w: view %d admits %q as incarnation %d", ErrView, v.number, m.Identity, m.Incarnation)
	}
	if m.Rank < 0 || i > 0 && m.Rank <= v.added[i-1].Rank || stay.Find(m.Rank) != nil {
		return fmt.Errorf("%w: rank %d is out of place in view %d of %d slots", ErrView, m.Rank, v.number, v.slots)
	}
	if holder, ok := named(m.Identity); ok && !v.removed.has(holder) {
		return fmt.Errorf("%w: identity %q is there twice", ErrView, m.Identity)
	}
	return m.check()
}

// former returns the last members of the new view's holes: those of the view before,
// and those removed now. A process that is back, at whatever rank, is no longer
// remembered. It is in added, since no identity was both member and former before.
func (v *value) former(before, next *View, back map[string]bool) Members {
	forgotten := func(m *Member) bool { return m.Rank >= v.slots || next.Has(m.Rank) || back[m.Identity] }
	var forget []protocol.Rank
	for _, m := range before.Former.All() {
		if forgotten(m) {
			forget = append(forget, m.Rank)
		}
	}
	var remember []Member
	for _, i := range v.removed.each() {
		if m := before.Members.At(i); !forgotten(m) {
			remember = append(remember, *m)
		}
	}
	return before.Former.change(forget, remember...)
}

func byRank(a, b Member) int { return cmp.Compare(a.Rank, b.Rank) }
