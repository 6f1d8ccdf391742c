package backbone

import (
	"cmp"
	"slices"
)

// View is a view of a backbone.
type View struct {
	// Members are in the order of their ranks. The first one is the leader.
	Members []Member
	// Quorum says that the backbone has one.
	Quorum bool
}

// Member is a delegate in a backbone.
type Member struct{ ID, Address, Zone string }

// has reports whether a view has a member at an address.
func (v *View) has(address string) bool {
	return slices.ContainsFunc(v.Members, func(m Member) bool { return m.Address == address })
}

// hasZone reports whether a view has a member of a zone.
func (v *View) hasZone(zone string) bool {
	return slices.ContainsFunc(v.Members, func(m Member) bool { return m.Zone == zone })
}

// compare compares a backbone with another one: it returns 1 if the other one is larger, and -1 if it
// is smaller. Of two that have as many members, the larger one has a leader of a zone that is
// earlier in the order of names.
func (v *View) compare(other *View) int {
	return cmp.Or(cmp.Compare(len(other.Members), len(v.Members)), cmp.Compare(v.Members[0].ID, other.Members[0].ID))
}

// maxSeeds bounds the members that are added to the seeds of a backbone.
const maxSeeds = 8

// seeds returns addresses to join a backbone by: those that were asked, and further ones, since
// members may die while this process joins. There are none if those that were asked have left the
// backbone, or if it has no quorum: joining would wait for it.
func (f *Found) seeds() (seeds []string) {
	if !f.View.Quorum {
		return nil
	}
	for _, a := range f.Asked {
		if f.View.has(a) {
			seeds = append(seeds, a)
		}
	}
	for _, m := range f.View.Members[:min(len(f.View.Members), maxSeeds)] {
		if !slices.Contains(seeds, m.Address) {
			seeds = append(seeds, m.Address)
		}
	}
	return seeds
}
