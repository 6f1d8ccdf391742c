package stream

import "github.com/pleach-go/pleach/protocol"

// foster lets a member whose parent in a tree is dead find another: whoever's
// offers it lives on sends it everything from then on, like to a child. So a
// dead member nobody has been told of costs the first messages a correction, and
// the following ones next to nothing. It is an agreement between two, for a
// while, and only ever adds a sender: nothing depends on it.
type foster struct {
	// As an orphan: how many segments in a row have come by correction, who
	// feeds this member, and how many segments it has had from there since it
	// last asked.
	orphaned int
	parent   protocol.Rank
	fed      uint64
	// As a foster parent: up to which segment whom to feed.
	children map[protocol.Rank]uint64
}

const (
	// orphanAfter is how many segments in a row make an orphan: one alone may
	// have been an offer that overtook the tree.
	orphanAfter = 2
	// fosterFor is how many segments an agreement holds; it is renewed halfway.
	fosterSegments = 512
	// maxFostered bounds how many one member feeds for one root.
	maxFostered = 8
)

// notice learns from where a segment came first whether the tree still feeds
// this member. Old segments say nothing: who catches up gets them by asking,
// whatever the tree does now.
func (m *Member) updateFoster(f *flow, from protocol.Rank, number uint64, byTree bool) {
	p := &f.foster
	switch {
	case byTree && from == f.parent:
		p.orphaned, p.parent = 0, protocol.NoRank
	case byTree && from == p.parent:
		if p.fed++; p.fed >= fosterSegments/2 {
			p.fed = 0
			m.queueFrame(from, f, frame{kind: adopt})
		}
	case !byTree && number+1 >= f.wanted:
		if p.orphaned++; p.orphaned >= orphanAfter {
			p.orphaned, p.parent, p.fed = 0, from, 0
			m.queueFrame(from, f, frame{kind: adopt})
		}
	}
}

// adopt begins to feed an orphan.
func (f *flow) adopt(orphan protocol.Rank) {
	p := &f.foster
	if p.children == nil {
		p.children = make(map[protocol.Rank]uint64)
	}
	if _, known := p.children[orphan]; known || len(p.children) < maxFostered {
		p.children[orphan] = f.next + fosterSegments
	}
}

// feed passes a segment on to those adopted.
func (m *Member) feedOrphans(f *flow, number uint64, seg *segment) {
	if len(f.foster.children) == 0 {
		return // as nearly always
	}
	for orphan, until := range f.foster.children {
		if number >= until {
			delete(f.foster.children, orphan)
			continue
		}
		m.stats.Grafted++
		m.queueSegment(orphan, f, data, seg)
	}
}
