package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// compose makes the change that this member wishes for: who takes part stays,
// but for those who leave, and candidates come in.
func (m *Machine) compose(members set, cut []Position) *value {
	v := &value{number: m.view.Number + 1, slots: m.view.Slots, removed: newSet(len(m.view.Members)), cut: cut}
	for i, member := range m.view.Members {
		if !members.has(i) || slices.Contains(m.leavers, suspect{member.Rank, member.Incarnation}) {
			v.removed.add(i)
		}
	}
	p := newPlacing(&m.view)
	for i := range m.view.Members {
		if !v.removed.has(i) {
			p.taken[m.view.Members[i].Rank] = &m.view.Members[i]
			p.count++
		}
	}
	bytes := 0
	for _, c := range m.candidates {
		joiner := c.Member
		bytes += len(appendMember(nil, &joiner))
		if bytes > addedBytes {
			break
		}
		if p.place(&joiner) {
			v.added = append(v.added, joiner)
		}
	}
	if p.count == 0 { // the last one leaves: somebody must be in a view
		v.removed.remove(m.self)
		p.taken[m.config.Self.Rank] = &m.view.Members[m.self]
		p.count++
	}
	slices.SortFunc(v.added, byRank)
	v.slots = p.compact()
	return v
}

// placing deals out ranks.
type placing struct {
	slots protocol.Rank
	taken []*Member // by rank; nil: a hole
	last  []*Member // who has or had a rank in the view before, by rank; nil: nobody
	count int
}

func newPlacing(before *View) *placing {
	p := &placing{slots: before.Slots, taken: make([]*Member, before.Slots), last: make([]*Member, before.Slots)}
	for _, list := range [][]Member{before.Former, before.Members} {
		for i := range list {
			p.last[list[i].Rank] = &list[i]
		}
	}
	return p
}

// place gives a joiner its rank. It fails if the joiner is still there, as an
// older start that takes part in this very change, or if there is no room.
func (p *placing) place(j *Member) bool {
	if slices.ContainsFunc(p.taken, func(m *Member) bool { return m != nil && m.Identity == j.Identity }) {
		return false
	}
	j.Rank = p.rankFor(j)
	if j.Rank == MaxSlots {
		return false
	}
	if j.Rank == p.slots {
		p.slots++
		p.taken, p.last = append(p.taken, nil), append(p.last, nil)
	}
	p.taken[j.Rank] = j
	p.count++
	return true
}

// rankFor chooses: its own old rank if that is a hole; else a hole whose ring
// neighbors are of other failure domains; else any hole; else a new slot.
func (p *placing) rankFor(j *Member) protocol.Rank {
	for r, last := range p.last {
		if p.taken[r] == nil && last != nil && last.Identity == j.Identity {
			return protocol.Rank(r)
		}
	}
	hole := p.slots
	for r := range p.slots {
		if p.taken[r] != nil || p.last[r] != nil && p.last[r].Incarnation >= j.Incarnation {
			continue
		}
		if !p.besideDomain(r, j.Domain) {
			return r
		}
		hole = min(hole, r)
	}
	return hole
}

// besideDomain reports whether a ring neighbor of rank r, the next one present to
// either side, fails with the same domain.
func (p *placing) besideDomain(r protocol.Rank, domain string) bool {
	if domain == "" || p.count == 0 {
		return false
	}
	for _, step := range []protocol.Rank{1, p.slots - 1} {
		at := (r + step) % p.slots
		for p.taken[at] == nil {
			at = (at + step) % p.slots
		}
		if p.taken[at].Domain == domain {
			return true
		}
	}
	return false
}

// minCompact is how many holes there must be before compaction is worth it.
const minCompact = 8

// compact returns the number of slots after trailing holes are cut off, which is
// due when more than half of the slots are holes. Only trailing ones go: the
// numbers of the living never change.
func (p *placing) compact() protocol.Rank {
	slots := p.slots
	if holes := int(slots) - p.count; holes < minCompact || 2*holes <= int(slots) {
		return slots
	}
	for slots > 1 && p.taken[slots-1] == nil {
		slots--
	}
	return slots
}
