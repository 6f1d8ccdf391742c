package stream

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A member that is down or stalled, or whose backlog has expired, is fed around: its children
// become those of the member above. It must acknowledge all the same. In a view its credits count,
// too, and in a static group, which has no view that would go on without it, they do not.
func TestFedAround(t *testing.T) {
	for what, set := range map[string]func(*Member, protocol.Rank){
		"nothing": func(*Member, protocol.Rank) {},
		"down":    func(m *Member, r protocol.Rank) { m.setDown(r, true) },
		"stalled": func(m *Member, r protocol.Rank) { m.setStalled(r, true) },
		"backlog": func(m *Member, r protocol.Rank) { m.startBacklog(1, send{to: r, kind: data, flow: m.own.flow}) },
		"expired": func(m *Member, r protocol.Rank) {
			m.startBacklog(1, send{to: r, kind: data, flow: m.own.flow})
			m.expireBacklogs(1 + stallTimeout)
		},
	} {
		for _, static := range []bool{false, true} {
			m := group(t, Config{}, 16)[0]
			if static {
				m.view = 0
			}
			f := m.own.flow
			before := slices.Clone(f.children)
			below := m.layBelow(t, before[0])
			set(m, before[0])
			feeds := append(slices.Clone(below), before[1:]...)
			answers := append([]protocol.Rank{before[0]}, feeds...)
			if what == "nothing" || what == "backlog" {
				feeds, answers = before, before
			}
			grants := answers
			if static {
				grants = feeds
			}
			if !slices.Equal(f.children, feeds) || !slices.Equal(f.ackers, answers) || !slices.Equal(f.grantors, grants) {
				t.Errorf("%s, static %t: feeds %v, asks %v, has credits of %v; want %v, %v, %v", what, static, f.children, f.ackers,
					f.grantors, feeds, answers, grants)
			}
		}
	}
}

// layBelow returns the children of a member in the tree of this one.
func (m *Member) layBelow(t *testing.T, r protocol.Rank) []protocol.Rank {
	t.Helper()
	c := m.config
	c.Rank = r
	other, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	f, err := other.open(m.config.Rank, 1)
	if err != nil || len(f.children) == 0 {
		t.Fatalf("rank %d has %v below it: %v", r, f.children, err)
	}
	return f.children
}

// A connection to a process that is no member, or of a member to itself, says nothing about
// neighbors.
func TestStrangersAreNotNeighbors(t *testing.T) {
	for _, peer := range []protocol.Rank{0, 20} {
		m := group(t, Config{}, 9)[0]
		receiveFrom(t, m, 1, 3, 0, 0, 10)
		drain(m, 1)
		m.Down(1, peer)
		if m.down[peer] || m.retryDue != protocol.Never || len(drain(m, 1)) > 0 {
			t.Errorf("rank %d: down %t, tried again at %d", peer, m.down[peer], m.retryDue)
		}
	}
}
