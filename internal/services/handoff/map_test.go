package handoff

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// members returns members of weight 1 with these numbers.
func members(numbers ...int) (list []Member) {
	for _, n := range numbers {
		list = append(list, Member{Process: Process{n, 1}, ID: fmt.Sprint("member-", n), Weight: 1})
	}
	return list
}

// owners returns the IDs of a map, by partition.
func owners(m *Map) (ids []string) {
	for p := range m.best {
		owner, _ := m.Owner(p)
		ids = append(ids, owner.ID)
	}
	return ids
}

// A map that has followed views equals that of a process which knows the last view alone, and
// moves nothing between members that stay.
func TestMapsFollowViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const partitions = 64
		m, before := NewMap(partitions), make([]string, partitions)
		weights := map[string]int{}
		for range rapid.IntRange(1, 8).Draw(t, "views") {
			var list []Member
			now := map[string]int{}
			for _, n := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6}).Draw(t,
				"order")[:rapid.IntRange(0, 7).Draw(t, "size")] {
				list = append(list, members(n)...)
				last := &list[len(list)-1]
				last.Weight = rapid.IntRange(0, 3).Draw(t, "weight")
				now[last.ID] = last.Weight
			}
			m.Update(list)
			fresh := NewMap(partitions)
			fresh.Update(list)
			for p, id := range owners(m) {
				if want, _ := fresh.Owner(p); id != want.ID {
					t.Fatalf("partition %d: %q after other views, %q alone", p, id, want.ID)
				}
				old := before[p]
				if old != "" && id != old && now[old] >= weights[old] && now[id] <= weights[id] {
					t.Fatalf("partition %d moved from %q to %q, of which neither has changed", p, old, id)
				}
			}
			before, weights = owners(m), now
		}
	})
}

// The minimum that moves when a member goes are its own partitions, and when one comes, its
// share.
func TestMapsMoveTheMinimum(t *testing.T) {
	const partitions, size = 1024, 16
	all := make([]int, size)
	for i := range all {
		all[i] = i
	}
	m := NewMap(partitions)
	m.Update(members(all...))
	full := owners(m)
	for gone := range size {
		rest := append(append([]int{}, all[:gone]...), all[gone+1:]...)
		m.Update(members(rest...))
		moved, its := 0, 0
		for p, id := range owners(m) {
			if id != full[p] {
				moved++
			}
			if full[p] == fmt.Sprint("member-", gone) {
				its++
			}
		}
		if moved != its {
			t.Errorf("%d partitions moved when a member with %d went", moved, its)
		}
		m.Update(members(all...))
		for p, id := range owners(m) {
			if id != full[p] {
				t.Fatalf("partition %d is not where it was after member %d is back", p, gone)
			}
		}
	}
}

// Shares follow weights, as far as chance lets them: within five standard deviations.
func TestSharesFollowWeights(t *testing.T) {
	const partitions = 20_000
	list := members(0, 1, 2, 3)
	total := 0
	for i := range list {
		list[i].Weight = i
		total += i
	}
	m := NewMap(partitions)
	m.Update(list)
	count := map[string]int{}
	for _, id := range owners(m) {
		count[id]++
	}
	for _, one := range list {
		share := float64(one.Weight) / float64(total)
		mean := share * partitions
		if off := math.Abs(float64(count[one.ID]) - mean); off > 5*math.Sqrt(mean*(1-share)) {
			t.Errorf("weight %d of %d has %d of %d partitions", one.Weight, total, count[one.ID], partitions)
		}
	}
}

func FuzzDecode(f *testing.F) {
	m := Message{Kind: Released, View: 7, From: Process{1, 3}, Items: []Item{{4, 6}, {5, 1 << 40}}}
	f.Add(m.Encode())
	f.Add([]byte{0, 1, 1, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(2, 1024, b)
		if err != nil {
			return
		}
		again, err := Decode(2, 1024, m.Encode())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(m) {
			t.Fatalf("%v: %v, %v", m, again, err)
		}
	})
}

// Members without a weight own nothing, also if there are no others.
func TestMembersWithoutWeightOwnNothing(t *testing.T) {
	m := NewMap(4)
	for _, members := range [][]Member{{{ID: "a"}, {ID: "b"}}, {{ID: "a"}, {ID: "b", Weight: 1}}} {
		m.Update(members)
		for p := range 4 {
			if owner, ok := m.Owner(p); ok != (members[1].Weight > 0) || ok && owner.ID != "b" {
				t.Errorf("%v: %v owns %d: %t", members, owner, p, ok)
			}
		}
	}
}
