package member

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// alone returns a member of a group whose other members are not there.
func alone(t *testing.T, size int, self protocol.Rank, change func(*Config)) (*Machine, []membership.Member) {
	t.Helper()
	members := make([]membership.Member, size)
	for r := range members {
		members[r] = membership.Member{
			Rank: protocol.Rank(r), Identity: fmt.Sprint("p", r), Address: fmt.Sprint("host", r),
			Incarnation: FirstIncarnation, Version: 5,
		}
	}
	c := Config{
		Self: members[self], View: membership.View{
			Number: 1, Slots: protocol.Rank(size), Version: 5,
			Members: membership.MembersOf(members...),
		},
		Heartbeat: heartbeat.Config{Interval: 300 * ms, Timeout: 1500 * ms},
	}
	if change != nil {
		change(&c)
	}
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	m.Start(1)
	return m, members
}

// contacted counts the frames of view changes that a member sends at a time, by receiver.
func contacted(m *Machine, now protocol.Time) map[protocol.Rank]int {
	list := map[protocol.Rank]int{}
	for to, head, _, ok := m.Next(now); ok; to, head, _, ok = m.Next(now) {
		if head[0] == viewFrame {
			list[to]++
		}
	}
	return list
}

// A member connects in advance to the next one on the ring and, in a small group, to the
// coordinator and its successor; and again only to those that have changed.
func TestNeighborsAreContactedInAdvance(t *testing.T) {
	for _, c := range []struct {
		size int
		self protocol.Rank
		want []protocol.Rank
	}{
		{5, 2, []protocol.Rank{0, 1, 3}},
		{5, 4, []protocol.Rank{0, 1}},
		{5, 0, []protocol.Rank{1}},
		{5, 1, []protocol.Rank{0, 2}},
		{2, 1, []protocol.Rank{0}},
		{1, 0, nil},
		{membership.DefaultFlatThreshold, 5, []protocol.Rank{0, 1, 6}},
		{membership.DefaultFlatThreshold + 1, 5, []protocol.Rank{6}},
	} {
		m, _ := alone(t, c.size, c.self, nil)
		got := contacted(m, 1)
		if ranks := slices.Sorted(maps.Keys(got)); !slices.Equal(ranks, c.want) || len(got) > 0 &&
			slices.Max(slices.Collect(maps.Values(got))) > 1 {
			t.Errorf("rank %d of %d contacts %v, want %v", c.self, c.size, got, c.want)
		}
	}
	m, members := alone(t, 6, 2, nil)
	contacted(m, 1)
	for i, c := range []struct {
		without, want []protocol.Rank
	}{
		{[]protocol.Rank{5}, nil},
		{[]protocol.Rank{5, 3}, []protocol.Rank{4}},
		{[]protocol.Rank{5, 3, 1}, nil},
		{[]protocol.Rank{5, 3, 1, 0}, nil},
		{nil, []protocol.Rank{0, 1, 3}},
	} {
		stay := slices.DeleteFunc(slices.Clone(members),
			func(m membership.Member) bool { return slices.Contains(c.without, m.Rank) })
		v := membership.View{Number: uint64(2 + i), Slots: 6, Version: 5, Members: membership.MembersOf(stay...)}
		m.acts = true
		m.Install(&v)
		if !slices.Equal(slices.Sorted(maps.Keys(contacted(m, 1))), c.want) {
			t.Errorf("a view without %v: want contacts to %v", c.without, c.want)
		}
	}
}

// Heartbeats go to both neighbors on the ring, once each, however small the group is.
func TestHeartbeatsGoToNeighbors(t *testing.T) {
	for size := 1; size <= 5; size++ {
		g := newGroup(t, size, false)
		g.run(3100*ms, nil)
		want := map[[2]protocol.Rank]int{}
		for r := range size {
			for _, n := range []int{r + 1, r + size - 1} {
				n %= size
				if n != r {
					want[[2]protocol.Rank{protocol.Rank(r), protocol.Rank(n)}] = 10
				}
			}
		}
		if !maps.Equal(g.beats, want) {
			t.Errorf("%d members: %v, want %v", size, g.beats, want)
		}
	}
}

// A neighbor of the first view need not have started, unless the view was agreed on: then it has a
// nonce. Those of a later view have.
func TestSilentNeighbors(t *testing.T) {
	for _, c := range []struct {
		name  string
		nonce uint64
		later bool
		want  []protocol.Rank
	}{{"first", 0, false, nil}, {"agreed", 9, false, []protocol.Rank{0, 2}}, {"later", 0, true, []protocol.Rank{0, 2}}} {
		silent := map[protocol.Rank]bool{}
		m, _ := alone(t, 4, 1, func(config *Config) {
			if c.later {
				config.View.Number = 2
			}
			var members []membership.Member
			for _, m := range config.View.Members.All() {
				n := *m
				n.Nonce = c.nonce
				members = append(members, n)
			}
			config.Self, config.View.Members = members[1], membership.MembersOf(members...)
			config.OnSilence = func(r protocol.Rank, is bool) { silent[r] = is }
		})
		for now := protocol.Time(1); now < 6000*ms; now += 50 * ms {
			contacted(m, now)
		}
		if got := slices.Sorted(maps.Keys(silent)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v are silent, want %v", c.name, got, c.want)
		}
	}
}

// A member that is cut off knows it before its heartbeats find a neighbor silent, and its driver is
// told; also when it hears the others again.
func TestCutOffMemberKnowsSoon(t *testing.T) {
	g := newGroup(t, 5, false)
	m := g.machine(0)
	told, silent := 0, 0
	m.config.OnState = func() { told++ }
	m.config.OnSilence = func(protocol.Rank, bool) { silent++ }
	quorum := func() bool { _, _, ok := m.Quorum(); return ok }
	g.run(2000*ms, nil)
	for r := range protocol.Rank(4) {
		g.deaf[r+1] = true
	}
	told = 0
	if !g.run(900*ms, func() bool { return !quorum() }) || silent > 0 || told == 0 {
		t.Fatalf("it has a quorum: %t; %d are silent; told %d times", quorum(), silent, told)
	}
	m.Settle(g.now)
	told = 0
	if err := m.Receive(g.now, 1, []byte{heartbeatFrame}); err != nil {
		t.Fatal(err)
	}
	m.Settle(g.now)
	if told != 1 {
		t.Error("a heartbeat of a member that could not be reached is not told")
	}
	clear(g.deaf)
	told = 0
	if !g.run(1500*ms, quorum) || told == 0 {
		t.Fatalf("it has a quorum: %t; told %d times", quorum(), told)
	}
	g.run(2000*ms, nil)
	if m.quiet || g.number(0) != 1 {
		t.Errorf("quiet %t, view %d", m.quiet, g.number(0))
	}
}
