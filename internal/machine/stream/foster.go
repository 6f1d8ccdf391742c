package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// foster finds another parent for a member whose parent in the tree is dead: the member
// whose offers feed it adopts it, and sends it everything from then on, as to a child.
// That is GRAFT of Plumtree, and its end PRUNE. So an undetected death costs the first messages a
// correction, and the following ones next to nothing. An adoption holds between two
// members, for a while, and only adds a sender: nothing depends on it.
type foster struct {
	due      protocol.Time // when this member is an orphan, unless the tree brings something
	source   protocol.Rank // sender of the last segment that has arrived by correction
	parent   protocol.Rank // foster parent of this member; NoRank: none
	fed      uint64        // segments from the foster parent since the last request for adoption
	children []adoption    // orphans that this member feeds, the oldest first
}

// adoption says at which segment an adopted orphan is no longer fed.
type adoption struct {
	orphan protocol.Rank
	until  uint64
}

const (
	// fosterSegments is how many segments an adoption lasts. It is renewed halfway.
	fosterSegments = 512
	// maxFostered bounds the orphans of one root that a member adopts. Beyond it,
	// requests are ignored.
	maxFostered = 8
)

// updateFoster concludes from the sender of a new segment whether the tree still feeds
// this member. Old segments do not count: a member that catches up pulls them, however
// the tree works now.
func (m *Member) updateFoster(now protocol.Time, f *flow, from protocol.Rank, number uint64, tree bool) {
	p := &f.foster
	switch {
	case tree && from == f.parent:
		m.endAdoption(f)
	case tree && from == p.parent:
		p.fed++
		if p.fed >= fosterSegments/2 {
			p.fed = 0
			m.queueFrame(from, f, frame{kind: adopt})
		}
	case !tree && number+1 >= f.wanted:
		p.source = from
		if p.due == protocol.Never {
			p.due = now + m.skew.patience()
			m.schedule(f, p.due)
		}
	}
}

// findFoster asks for adoption, because the tree has not brought for long what correction
// has.
func (m *Member) findFoster(f *flow) {
	p := &f.foster
	p.due, p.parent, p.fed = protocol.Never, p.source, 0
	m.queueFrame(p.parent, f, frame{kind: adopt})
}

// endAdoption records that the tree works, and tells the foster parent so.
func (m *Member) endAdoption(f *flow) {
	p := &f.foster
	if p.parent != protocol.NoRank {
		m.queueFrame(p.parent, f, frame{kind: adopt, first: f.next + 1})
	}
	p.due, p.parent = protocol.Never, protocol.NoRank
}

// adopt begins or renews the adoption of an orphan, or ends it if the tree brings a
// segment again.
func (f *flow) adopt(orphan protocol.Rank, fedFrom uint64) {
	p := &f.foster
	i := slices.IndexFunc(p.children, func(c adoption) bool { return c.orphan == orphan })
	a := adoption{orphan, f.next + fosterSegments}
	switch {
	case i >= 0 && fedFrom > 0:
		p.children = slices.Delete(p.children, i, i+1)
	case i >= 0:
		p.children[i] = a
	case fedFrom == 0 && len(p.children) < maxFostered:
		p.children = append(p.children, a)
	}
}

// feedOrphans forwards a segment to adopted orphans.
func (m *Member) feedOrphans(f *flow, number uint64, seg *segment) {
	f.foster.children = slices.DeleteFunc(f.foster.children, func(a adoption) bool { return number >= a.until })
	for _, a := range f.foster.children {
		m.stats.Grafted++
		m.queueSegment(a.orphan, f, data, seg)
	}
}
