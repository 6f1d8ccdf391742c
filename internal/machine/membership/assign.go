package membership

import "github.com/pleach-go/pleach/protocol"

// assigner assigns ranks to joiners, on behalf of a proposer that composes a value.
type assigner struct {
	slots    protocol.Rank
	occupied Members // those that stay, and the joiners so far
	before   *View
	named    func(identity string) (int, bool) // returns an index in before
}

// FirstView returns the first view of members that begin a group together. It assigns
// their ranks.
func FirstView(members []Member) (View, error) {
	v := View{Number: 1, Slots: protocol.Rank(len(members))}
	a := assigner{slots: v.Slots, before: &View{}, named: func(string) (int, bool) { return 0, false }}
	for _, m := range members {
		a.assign(&m)
	}
	v.Members = a.occupied
	v.Version = v.Members.lowestVersion()
	return v, v.check()
}

// assign gives a joiner its rank. It reports false if its identity is taken, or if no
// slot is left.
func (a *assigner) assign(j *Member) bool {
	held := a.held(j.Identity)
	if held != nil && a.occupied.Find(held.Rank) == held {
		return false
	}
	j.Rank = a.rankFor(j)
	if j.Rank == MaxSlots {
		return false
	}
	a.slots = max(a.slots, j.Rank+1)
	a.occupied = a.occupied.change(nil, *j)
	return true
}

// held returns the member of the view before that has an identity, or nil.
func (a *assigner) held(identity string) *Member {
	if i, ok := a.named(identity); ok {
		return a.before.Members.At(i)
	}
	return nil
}

// lastRank returns the rank that a joiner had in the view before or in an earlier one, or
// NoRank if that is not known.
func (a *assigner) lastRank(j *Member) protocol.Rank {
	if m := a.held(j.Identity); m != nil {
		return m.Rank
	}
	for _, m := range a.before.Former.All() {
		if m.Identity == j.Identity {
			return m.Rank
		}
	}
	return protocol.NoRank
}

// rankFor returns the joiner's old rank if that is a hole; else a hole whose ring
// neighbors are of other failure domains; else any hole; else a new slot.
func (a *assigner) rankFor(j *Member) protocol.Rank {
	if r := a.lastRank(j); r != protocol.NoRank && a.occupied.Find(r) == nil {
		return r
	}
	hole := a.slots
	for r := range a.occupied.holes(a.slots) {
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
	n := a.occupied.Len()
	if domain == "" || n == 0 {
		return false
	}
	right, _ := a.occupied.Index(r)
	return a.occupied.At(right%n).Domain == domain || a.occupied.At((right-1+n)%n).Domain == domain
}

// minCompact is the smallest number of holes that compaction is worth.
const minCompact = 8

// compact returns the number of slots without trailing holes, if more than half of
// the slots are holes. Only trailing holes go: the rank of a member never changes.
func (a *assigner) compact() protocol.Rank {
	n := a.occupied.Len()
	if holes := int(a.slots) - n; holes < minCompact || 2*holes <= int(a.slots) {
		return a.slots
	}
	return a.occupied.At(n-1).Rank + 1
}
