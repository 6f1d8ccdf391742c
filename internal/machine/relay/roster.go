package relay

import (
	"cmp"
	"slices"
)

// roster is what a member knows of others, by the views of its zone and of the backbone.
type roster struct {
	siblings []Sibling         // delegates of this zone, by age
	rank     int               // this process in its zone
	peers    []Peer            // delegates in the backbone, by zone and age; nil: this process is not in it
	zones    []string          // other zones that are in the backbone, in order
	births   map[string]uint64 // births of the zones in the backbone
	order    []int             // ranks in this zone of its delegates in the backbone, by age
	index    int               // this process in order, or -1
}

// setPeers takes in a view of the backbone.
func (r *roster) setPeers(own string, peers []Peer) {
	r.peers = slices.SortedFunc(slices.Values(peers), func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Age, b.Age), cmp.Compare(a.Rank, b.Rank))
	})
	r.zones, r.births = nil, make(map[string]uint64)
	for _, p := range r.peers {
		if p.Zone != own && !slices.Contains(r.zones, p.Zone) {
			r.zones = append(r.zones, p.Zone)
		}
		r.births[p.Zone] = max(r.births[p.Zone], p.Born)
	}
}

// setOrder finds out in which order the delegates of this zone ship: those that are in the
// zone's view and in that of the backbone, by age. So a delegate that has not entered the
// backbone yet, or is dead in one of the views, keeps no other from shipping. It reports
// whether the delegates up to this one have changed.
func (r *roster) setOrder(own string) (changed bool) {
	var order []int
	index := -1
	for _, p := range r.peers {
		i := slices.IndexFunc(r.siblings, func(s Sibling) bool { return p.Zone == own && s.Age == p.Age })
		if i < 0 {
			continue
		}
		if r.siblings[i].Rank == r.rank {
			index = len(order)
		}
		order = append(order, r.siblings[i].Rank)
	}
	changed = index != r.index || !slices.Equal(order[:index+1], r.order[:index+1])
	r.order, r.index = order, index
	return changed
}

// peer returns the delegate of a rank.
func (r *roster) peer(rank int) (Peer, bool) {
	i := slices.IndexFunc(r.peers, func(p Peer) bool { return p.Rank == rank })
	if i < 0 {
		return Peer{}, false
	}
	return r.peers[i], true
}

// delegates returns the delegates of a zone that are in the backbone, by age.
func (r *roster) delegates(zone string) []Peer {
	first, _ := slices.BinarySearchFunc(r.peers, zone, func(p Peer, zone string) int { return cmp.Compare(p.Zone, zone) })
	last := first
	for last < len(r.peers) && r.peers[last].Zone == zone {
		last++
	}
	return r.peers[first:last] // they are in this order
}
