package membership

import (
	"strings"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// More than half of the members decide, or half with the lowest rank. Where any number may decide,
// one member suffices, whatever the others do.
func TestNeededMembers(t *testing.T) {
	for _, c := range []struct {
		size              int
		noQuorum          bool
		unreachable       []protocol.Rank
		reachable, needed int
		ok                bool
	}{
		{5, false, nil, 5, 3, true},
		{5, false, []protocol.Rank{2, 3}, 3, 3, true},
		{5, false, []protocol.Rank{2, 3, 4}, 2, 3, false},
		{4, false, nil, 4, 2, true},
		{4, false, []protocol.Rank{2, 3}, 2, 2, true},
		{4, false, []protocol.Rank{0, 3}, 2, 3, false}, // half is enough with the lowest rank only
		{4, false, []protocol.Rank{0}, 3, 3, true},
		{4, true, nil, 4, 1, true},
		{4, true, []protocol.Rank{0, 2, 3}, 1, 1, true},
	} {
		v := firstView(c.size)
		m, err := New(Config{Self: *v.Members.At(1), View: v, Log: &testLog{}, NoQuorum: c.noQuorum})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range c.unreachable {
			m.Suspect(1, r, 1)
		}
		if reachable, needed, ok := m.Quorum(); reachable != c.reachable || needed != c.needed || ok != c.ok {
			t.Errorf("%+v: %d of %d, %t", c, reachable, needed, ok)
		}
	}
}

// A process that returns after some views has its old rank, although another hole comes first.
func TestFormerMemberHasItsRankAgain(t *testing.T) {
	v := withJoiners(t, firstView(5), []protocol.Rank{1, 3})
	v = withJoiners(t, *v, []protocol.Rank{4})
	v = withJoiners(t, *v, nil, Member{Identity: "p3"}, Member{Identity: "new"}, Member{Identity: "p4"})
	for r, identity := range map[protocol.Rank]string{1: "new", 3: "p3", 4: "p4"} {
		if m, _ := v.Member(r); m.Identity != identity {
			t.Errorf("rank %d is %q, want %q", r, m.Identity, identity)
		}
	}
}

// A member that is evicted says which process has replaced it, or that it may join again.
func TestEvictionSaysWhatToDo(t *testing.T) {
	for want, successor := range map[string]*Member{"join again": nil, `replaced in view 3 by "x"`: {Identity: "x"}} {
		if err := (&EvictedError{Rank: 1, View: 2, By: 3, Successor: successor}); !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
