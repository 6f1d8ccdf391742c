package membership

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// withJoiners lets candidates into a view and returns the next one.
func withJoiners(t *testing.T, v View, removed []protocol.Rank, candidates ...Member) *View {
	t.Helper()
	self := *v.Members.At(0)
	m, err := New(Config{Self: self, View: v, Log: newTestLog(self, v)})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range candidates {
		c.Nonce = uint64(1 + i)
		if err := m.handleJoinRequest(1, candidate{Member: c}); err != nil {
			t.Fatal(err)
		}
	}
	members := newSet(v.Members.Len())
	for i, member := range v.Members.All() {
		members.add(i)
		for _, r := range removed {
			if r == member.Rank {
				members.remove(i)
			}
		}
	}
	next, err := m.compose(members, nil).apply(&v, v.named)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// Ranks are dealt so that members of one failure domain (rack, zone, host) are not ring
// neighbors, as far as there are holes to choose from.
func TestDomainsAreKeptApart(t *testing.T) {
	// Holes are 2, between a and a, and 4, between a and b.
	var members []Member
	for _, r := range []protocol.Rank{0, 1, 3, 5, 6, 7} {
		members = append(members, Member{
			Rank: r, Identity: fmt.Sprint("p", r), Domain: []string{"a", "b"}[r/5],
			Incarnation: 1,
		})
	}
	rankOf := func(domain string) protocol.Rank {
		v := View{Number: 1, Slots: 8, Members: MembersOf(members...)}
		next := withJoiners(t, v, nil, Member{Identity: "new", Domain: domain, Incarnation: 9})
		return next.Members.At(next.identity("new")).Rank
	}
	if r := rankOf("b"); r != 2 {
		t.Errorf("b is at rank %d, beside itself", r)
	}
	if r := rankOf("a"); r != 2 {
		t.Errorf("both holes are beside a, and rank %d is not the first", r)
	}
	if r := rankOf(""); r != 2 {
		t.Errorf("a process of an unknown domain is at rank %d, not the first", r)
	}
	members[0].Domain, members[1].Domain = "", ""
	if r := rankOf(""); r != 2 {
		t.Errorf("processes of unknown domains are kept apart, at rank %d", r)
	}
	members[0].Domain, members[1].Domain, members[3].Domain = "a", "b", "c" // 2 is between b and a, 4 between a and c
	if r := rankOf("b"); r != 4 {
		t.Errorf("b is at rank %d, beside itself", r)
	}
}

// The view that admits a process is its incarnation, so the messages of all that ever
// have a rank can be told apart.
func TestIncarnationIsTheViewOfAdmission(t *testing.T) {
	v := firstView(3)
	v.Number = 41
	old := *v.Members.At(1)
	old.Incarnation = 40
	v.Members = v.Members.change(nil, old)
	next := withJoiners(t, v, []protocol.Rank{1}, Member{Identity: "p1"}, Member{Identity: "new", Incarnation: 7})
	for _, name := range []string{"new", "p1"} {
		if m := next.Members.At(next.identity(name)); m.Incarnation != 42 {
			t.Errorf("%+v", m)
		}
	}
	if m, _ := next.Member(1); m.Identity != "p1" {
		t.Errorf("rank 1 is %+v", m)
	}
}

// Trailing holes are cut off when more than half of the slots are holes; the
// living keep their numbers.
func TestCompaction(t *testing.T) {
	v := firstView(20)
	var gone []protocol.Rank
	for r := protocol.Rank(19); r > 9; r-- {
		gone = append(gone, r)
	}
	if next := withJoiners(t, v, gone); next.Slots != 20 || next.Former.Len() != 10 {
		t.Fatalf("half of the slots are holes, no more: %v", next)
	}
	gone = append(gone, 3)
	next := withJoiners(t, v, gone)
	if next.Slots != 10 || next.Has(3) || next.Former.Len() != 1 {
		t.Fatalf("%v", next)
	}
	eight := []protocol.Rank{2, 3, 4, 5, 6, 7, 8, 9}
	if small := withJoiners(t, firstView(9), eight[:minCompact-1]); small.Slots != 9 {
		t.Fatalf("not worth it: %v", small)
	}
	if worth := withJoiners(t, firstView(10), eight); worth.Slots != 2 {
		t.Fatalf("just worth it: %v", worth)
	}
	// What was cut off is grown anew.
	if again := withJoiners(t, *next, nil, Member{Identity: "a", Incarnation: 7},
		Member{Identity: "b", Incarnation: 8}); again.Slots != 11 || !again.Has(3) || !again.Has(10) {
		t.Fatalf("%v", again)
	}
}

// Members that begin together get ranks in their order as far as their domains allow: those of one
// domain are no neighbors if they need not be. No identity is there twice.
func TestFirstView(t *testing.T) {
	member := func(identity, domain string) Member { return Member{Identity: identity, Domain: domain} }
	v, err := FirstView([]Member{member("a", "x"), member("b", "x"), member("c", "y"), member("d", "y")})
	if err != nil {
		t.Fatal(err)
	}
	neighbors := 0
	for i, m := range v.Members.All() {
		if m.Domain == v.Members.At((i+1)%4).Domain {
			neighbors++
		}
	}
	if v.Members.Len() != 4 || v.Slots != 4 || neighbors > 2 {
		t.Errorf("%v has %d neighbors of one domain", &v, neighbors)
	}
	if _, err := FirstView([]Member{member("a", ""), member("a", "")}); !errors.Is(err, ErrView) {
		t.Errorf("an identity twice: %v", err)
	}
	if _, err := FirstView(nil); !errors.Is(err, ErrView) {
		t.Errorf("no members: %v", err)
	}
}
