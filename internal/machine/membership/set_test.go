package membership

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/protocol"
)

// members of a view, drawn as a map from their indices.
func drawSet(t *rapid.T, n int, name string) (set, map[int]bool) {
	s, model := newSet(n), map[int]bool{}
	for i := range n {
		if rapid.Bool().Draw(t, name) {
			s.add(i)
			model[i] = true
		}
	}
	return s, model
}

// A set is a set, also at the end of a byte.
func TestSetIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		s, a := drawSet(t, n, "a")
		o, b := drawSet(t, n, "b")
		equal := func(what string, got set, want func(i int) bool) {
			t.Helper()
			var list []int
			for i := range n {
				if want(i) {
					list = append(list, i)
				}
				if got.has(i) != want(i) {
					t.Fatalf("%s of %v and %v: %d is in it: %t", what, a, b, i, got.has(i))
				}
			}
			if got != nil && (!got.fits(n) || got.count() != len(list) || !slices.Equal(got.each(), list)) {
				t.Fatalf("%s of %v and %v: %v", what, a, b, got.each())
			}
		}
		equal("a set", s, func(i int) bool { return a[i] })
		equal("the complement", s.complement(n), func(i int) bool { return !a[i] })
		equal("the complement of none", set(nil).complement(n), func(int) bool { return true })
		union := slices.Clone(s)
		union.union(o)
		equal("the union", union, func(i int) bool { return a[i] || b[i] })
		covers, meets := true, false
		for i := range n {
			covers, meets = covers && (a[i] || !b[i]), meets || a[i] && b[i]
		}
		if s.covers(o) != covers || s.meets(o) != meets || set(nil).covers(o) != (o.count() == 0) || !s.covers(nil) ||
			s.meets(nil) {
			t.Fatalf("%v and %v: covers %t, meets %t", a, b, s.covers(o), s.meets(o))
		}
		v := firstView(n)
		by := protocol.Rank(rapid.IntRange(-1, n).Draw(t, "by"))
		rest := slices.Clone(s)
		dropped := rest.drop(&v, by, o)
		equal("what is left", rest, func(i int) bool { return a[i] && !b[i] && protocol.Rank(i) != by })
		if dropped != (meets || by >= 0 && a[int(by)]) || set(nil).drop(&v, by, o) {
			t.Fatalf("%v without %v and %d: dropped %t", a, b, by, dropped)
		}
		if s.has(8*len(s)) || append(slices.Clone(s), 0).fits(n) || s[:len(s)-1].fits(n) {
			t.Fatal("a set of another view fits")
		}
		if beyond := slices.Clone(s); n%8 != 0 {
			beyond.add(n)
			if beyond.fits(n) {
				t.Fatal("a set with one that is no member fits")
			}
		}
	})
}

// Any two quorums have a voter in common, and one of two parts of a view is a quorum.
func TestQuorumsMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		v := firstView(n)
		observers, _ := drawSet(t, n, "observers")
		voters := observers.complement(n)
		if voters.count() == 0 {
			voters.add(0)
		}
		v = withObservers(v, v.ranksOf(voters.complement(n))...)
		e := v.electorate()
		s, a := drawSet(t, n, "a")
		o, _ := drawSet(t, n, "b")
		if e.majority(s) && e.majority(o) && !s.common(voters).meets(o) {
			t.Fatalf("%v and %v are quorums of %v", s.each(), o.each(), voters.each())
		}
		if e.majority(s) != countsMost(&v, s) || e.majority(s) == e.majority(s.complement(n)) {
			t.Fatalf("%v of %v is a quorum: %t, and so are the others", s.each(), voters.each(), e.majority(s))
		}
		if v.CanDecideWithout(func(m *Member) bool { return !a[int(m.Rank)] }, LowestDecides) != e.majority(s) {
			t.Fatal("members that are left can decide if they are a quorum")
		}
		if s.has(voters.each()[0]) && e.majority(s) != (e.among(s) >= v.Needed()) {
			t.Fatalf("%v of %v: %d are needed", s.each(), voters.each(), v.Needed())
		}
	})
}

// The text of a view has its ranks, as ranges.
func TestTextOfAView(t *testing.T) {
	for want, ranks := range map[string][]protocol.Rank{
		"{0}": {0}, "{0-2}": {0, 1, 2}, "{0 2}": {0, 2}, "{1-2 4 6-8}": {1, 2, 4, 6, 7, 8},
	} {
		var members []Member
		for _, r := range ranks {
			members = append(members, Member{Rank: r, Identity: fmt.Sprint(r)})
		}
		v := View{Number: 3, Slots: 9, Members: MembersOf(members...)}
		if got := v.String(); got != fmt.Sprintf("view 3: %d of 9 slots %s", len(ranks), want) {
			t.Error(got)
		}
	}
}

// Views that differ in anything are not equal.
func TestEqualViews(t *testing.T) {
	for what, change := range map[string]func(*View){
		"":                func(*View) {},
		"another number":  func(v *View) { v.Number++ },
		"another version": func(v *View) { v.Version++ },
		"a slot more":     func(v *View) { v.Slots++ },
		"a member less":   func(v *View) { v.Members = v.Members.change([]protocol.Rank{1}) },
		"another meta":    func(v *View) { v.Members = v.Members.change(nil, Member{Rank: 1, Identity: "p1", Meta: "x"}) },
		"a former one":    func(v *View) { v.Former = MembersOf(Member{Rank: 3, Identity: "f"}) },
	} {
		v, w := firstView(3), firstView(3)
		change(&w)
		if v.Equal(&w) != (what == "") {
			t.Errorf("%q: equal %t", what, v.Equal(&w))
		}
	}
}

// Where any number of members may decide, one is enough.
func TestOneIsEnoughWithoutQuorum(t *testing.T) {
	for _, noQuorum := range []bool{false, true} {
		a := newAsker(t, func(c *Config) { c.NoQuorum = noQuorum })
		for range 2 {
			want := map[bool]int{true: 1, false: 3}[noQuorum]
			if _, needed, ok := a.Quorum(); needed != want || !ok {
				t.Errorf("without quorum %t: %d are needed, there are %t", noQuorum, needed, ok)
			}
			a.Suspect(a.now, 4, 1)
		}
	}
}

// Dropping members tells whether one of them was there.
func TestDrop(t *testing.T) {
	v := firstView(10)
	of := func(indices ...int) set {
		s := newSet(10)
		for _, i := range indices {
			s.add(i)
		}
		return s
	}
	for _, c := range []struct {
		have    []int
		by      protocol.Rank
		others  set
		left    int
		dropped bool
	}{
		{[]int{1, 9}, 1, nil, 1, true},
		{[]int{1, 9}, 2, nil, 2, false},
		{[]int{1, 9}, 77, nil, 2, false},
		{[]int{1, 9}, 2, of(9), 1, true},
		{[]int{1, 9}, 1, of(8), 1, true},
		{[]int{1, 9}, 1, of(1, 9), 0, true},
		{[]int{1, 9}, 2, of(3), 2, false},
		{nil, 1, of(1), 0, false},
	} {
		s := of(c.have...)
		if dropped := s.drop(&v, c.by, c.others); dropped != c.dropped || s.count() != c.left {
			t.Errorf("%+v: dropped %t, %v are left", c, dropped, s.each())
		}
	}
	if set(nil).drop(&v, 1, of(1)) {
		t.Error("none is there")
	}
}

// A view without members has no coordinator. Members can decide if those that are left are a quorum.
func TestCanDecideWithout(t *testing.T) {
	if m := (&View{}).Leader(); m != nil {
		t.Errorf("%v coordinates nothing", m)
	}
	v := firstView(5)
	for gone, can := range []bool{true, true, true, false, false, false} {
		if got := v.CanDecideWithout(func(m *Member) bool { return int(m.Rank) < gone }, LowestDecides); got != can {
			t.Errorf("without %d of 5: %t", gone, got)
		}
	}
	v = firstView(4)
	lower := func(m *Member) bool { return m.Rank < 2 }
	upper := func(m *Member) bool { return m.Rank >= 2 }
	one := func(m *Member) bool { return m.Rank == 0 }
	for tie, want := range map[Tie][3]bool{
		LowestDecides: {false, true, true}, NoneDecides: {false, false, true}, AnyMayDecide: {true, true, true},
	} {
		got := [3]bool{v.CanDecideWithout(lower, tie), v.CanDecideWithout(upper, tie), v.CanDecideWithout(one, tie)}
		if got != want {
			t.Errorf("rule %d: without the lower half, the upper one, and one: %t", tie, got)
		}
	}
}
