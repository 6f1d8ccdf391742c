package membership

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A list that was changed again and again is the list that it would be if it were made
// anew, and the lists before stay as they were.
func TestMembersAreAList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var model []Member
	var list Members
	for step := range 2000 {
		before, wasModel := list, slices.Clone(model)
		m := Member{Rank: protocol.Rank(rng.IntN(300)), Incarnation: uint64(step)}
		i, found := slices.BinarySearchFunc(model, m, byRank)
		switch {
		case !found:
			model, list = slices.Insert(model, i, m), list.change(nil, m)
		case rng.IntN(3) == 0: // it restarts
			model[i], list = m, list.change([]protocol.Rank{m.Rank}, m)
		default:
			model, list = slices.Delete(model, i, i+1), list.change([]protocol.Rank{m.Rank})
		}
		checkMembers(t, list, model)
		checkMembers(t, before, wasModel)
		if joined, left := since(list, before), since(before, list); len(joined)+len(left) > 2 || len(joined)+len(left) == 0 {
			t.Fatalf("step %d: %v joined and %v left", step, joined, left)
		}
		if !reflect.DeepEqual(list, MembersOf(model...)) || !list.equal(MembersOf(model...)) || list.equal(before) {
			t.Fatalf("step %d: equal lists differ, or others do not", step)
		}
	}
}

func since(l, before Members) (ranks []protocol.Rank) {
	for m := range l.Since(before) {
		ranks = append(ranks, m.Rank)
	}
	return ranks
}

// checkMembers compares all that a list tells with a slice.
func checkMembers(t *testing.T, l Members, want []Member) {
	t.Helper()
	if l.Len() != len(want) {
		t.Fatalf("%d members, want %d", l.Len(), len(want))
	}
	for i, m := range l.All() {
		if *m != want[i] || l.At(i) != m || l.Find(m.Rank) != m {
			t.Fatalf("index %d is %+v, want %+v", i, *m, want[i])
		}
	}
	holes := slices.Collect(l.holes(301))
	for r := range protocol.Rank(301) {
		i, ok := l.Index(r)
		at, known := slices.BinarySearchFunc(want, Member{Rank: r}, byRank)
		_, hole := slices.BinarySearch(holes, r)
		if i != at || ok != known || hole == known || (l.Find(r) != nil) != known {
			t.Fatalf("rank %d is at %d, %v, want %d, %v", r, i, ok, at, known)
		}
	}
}

// A recorded list is read again, and one that no member has written is refused.
func TestMembersSurviveJSON(t *testing.T) {
	list := firstView(70).Members
	text, err := json.Marshal(list)
	var got Members
	if err = errors.Join(err, json.Unmarshal(text, &got)); err != nil || !got.equal(list) {
		t.Fatalf("%s became %v: %v", text, got, err)
	}
	for _, bad := range []string{
		`[{"Rank":1},{"Rank":1}]`, `[{"Rank":2},{"Rank":1}]`, `[{"Rank":-1}]`,
		`[{"Rank":65536}]`, `{}`,
	} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s is taken for members", bad)
		}
	}
}

// sizes are those of groups whose view changes are compared.
var sizes = []int{64, 1024, 16384}

// removal is the value that removes one member of a view.
func removal(v *View) *value {
	c := &value{number: v.Number + 1, slots: v.Slots, removed: newSet(v.Members.Len())}
	c.removed.add(v.Members.Len() / 2)
	return c
}

// A change copies the members around those that it is about and the spine of the list, but
// not the list.
func TestChangeCopiesLittle(t *testing.T) {
	v := firstView(16384)
	next, err := removal(&v).apply(&v, v.named)
	if err != nil {
		t.Fatal(err)
	}
	copied := 0
	for k := range next.Members.chunks {
		if !next.Members.chunks[k].same(&v.Members.chunks[k]) {
			copied++
		}
	}
	if copied != 1 {
		t.Errorf("one removal copies %d chunks of %d", copied, len(v.Members.chunks))
	}
	if n := testing.AllocsPerRun(20, func() { _, _ = removal(&v).apply(&v, v.named) }); n > 20 {
		t.Errorf("%v allocations for one removal", n)
	}
}

// BenchmarkApply is a member's own part of a view change: what it makes of a decided value.
func BenchmarkApply(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			v := firstView(size)
			change := removal(&v)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := change.apply(&v, v.named); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkViewChange is all that a leaf of the trees does for one change of view, from
// the first frame to the next view.
func BenchmarkViewChange(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			first := firstView(size)
			change := removal(&first)
			self := *first.Members.At(size - 1)
			ballot := Ballot{1, 0}
			head := func(f frame) []byte {
				f.from, f.view, f.incarnation = 0, 1, 1
				return f.append(nil)
			}
			whole := change.removed.complement(size)
			frames := [][]byte{
				head(frame{kind: Prepare, ballot: ballot, members: whole}),
				head(frame{kind: Propose, ballot: ballot, value: change}),
				head(frame{kind: Commit, root: 0, value: change}),
			}
			config := Config{Self: self, View: first, Log: forgetfulLog{}}
			if err := config.check(); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				m := newMachine(config, &memo{})
				for _, f := range frames {
					if err := m.Receive(1, 0, f); err != nil {
						b.Fatal(err)
					}
					for _, _, ok := m.Next(1); ok; _, _, ok = m.Next(1) {
					}
				}
				if m.view.Number != 2 {
					b.Fatalf("%v", &m.view)
				}
			}
		})
	}
}

// A machine that has an index of the names keeps it right as members come and go, and as
// ranks and identities change hands.
func TestNamesFollowViews(t *testing.T) {
	v := firstView(4)
	m, err := New(Config{Self: *v.Members.At(0), View: v, Log: forgetfulLog{}})
	if err != nil {
		t.Fatal(err)
	}
	m.named("p1")
	next := v
	next.Number = 2
	next.Members = v.Members.change([]protocol.Rank{3}, Member{Rank: 1, Identity: "p2", Incarnation: 2},
		Member{Rank: 2, Identity: "new", Incarnation: 2})
	m.enter(&next)
	for _, identity := range []string{"p0", "p1", "p2", "p3", "new"} {
		i, ok := m.named(identity)
		if want, there := next.named(identity); i != want || ok != there {
			t.Errorf("%s is at %d, %v, want %d, %v", identity, i, ok, want, there)
		}
	}
}

// Two members of one rank are no list.
func TestMembersOfOneRank(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("two members of one rank are taken for a list")
		}
	}()
	MembersOf(Member{Rank: 1}, Member{Rank: 1})
}
