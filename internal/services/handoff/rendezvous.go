package handoff

// The map of a view by rendezvous hashing (Thaler & Ravishankar 1998): each member has a
// score for each partition, and the highest one wins. A member that goes moves only its own
// partitions, and one that comes moves only those that it gets. Weights are whole numbers:
// a member of weight 3 has three scores. So there is no floating point that two kinds of
// processors could round differently.

// MaxWeight is the highest weight of a member.
const MaxWeight = 100

// Process is one start of a member: Incarnation is the view that has admitted it.
type Process struct {
	Rank        int
	Incarnation uint64
}

// Member is a member of a view. Its scores follow from its ID, so a process that is
// started again gets its partitions back.
type Member struct {
	Process
	ID     string
	Weight int // 0: it owns nothing
}

// Map is the map from partition to member of the last view that it was given.
type Map struct {
	members []Member
	best    []score // by partition
}

// score is the member that wins a partition.
type score struct {
	member int // index in Map.members; -1: no member has a weight
	value  uint64
}

// NewMap returns the map of no members.
func NewMap(partitions int) *Map {
	m := &Map{best: make([]score, partitions)}
	for p := range m.best {
		m.best[p].member = -1
	}
	return m
}

// Owner returns the member of a partition, or false if no member has a weight.
func (m *Map) Owner(partition int) (Member, bool) {
	if best := m.best[partition].member; best >= 0 {
		return m.members[best], true
	}
	return Member{}, false
}

// Update changes the map to that of other members. Only partitions whose member is gone
// are compared with all members, the others with those that are new: in a large group most
// views change little.
func (m *Map) Update(members []Member) {
	kept := make(map[string]int, len(members))
	for i := range members {
		kept[members[i].ID] = i
	}
	moved := make([]int, len(m.members)) // the new index of a member that has stayed, or -1
	for i, old := range m.members {
		moved[i] = -1
		if at, ok := kept[old.ID]; ok && members[at].Weight == old.Weight {
			moved[i] = at
			delete(kept, old.ID)
		}
	}
	for p := range m.best {
		best := &m.best[p]
		if best.member >= 0 {
			best.member = moved[best.member]
		}
		if best.member >= 0 {
			for _, i := range kept {
				best.compare(members, i, p)
			}
			continue
		}
		*best = score{member: -1}
		for i := range members {
			best.compare(members, i, p)
		}
	}
	m.members = members
}

// compare takes a member if its score is higher. The ID decides between equal ones.
func (s *score) compare(members []Member, i, partition int) {
	m := &members[i]
	if m.Weight == 0 {
		return
	}
	value := m.score(partition)
	if s.member < 0 || value > s.value || value == s.value && m.ID < members[s.member].ID {
		*s = score{i, value}
	}
}

// score is the highest of a member's scores for a partition.
func (m *Member) score(partition int) (highest uint64) {
	id := Hash(m.ID)
	for i := range m.Weight {
		highest = max(highest, mix(id^mix(uint64(partition)<<8|uint64(i))))
	}
	return highest
}

// Hash returns 64 bits of a string, the same in every process: FNV-1a, mixed.
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

// mix is the last step of SplitMix64: every bit of the input changes half of the output.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
