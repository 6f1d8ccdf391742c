package leases

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// prepared has a table agree on the lowest base.
func prepared(table *Table) *Table {
	for range 2 {
		c, _, _ := table.Prepare(0, "p", 0, nil)
		table.Apply(0, c.Encode())
	}
	return table
}

// acquire takes a lease as a process with a floor, and returns the verdict and the token.
func acquire(table *Table, floor uint64) (Verdict, uint64) {
	c, _ := table.Take(0, "a", Entry{TTL: 10, Holder: "x"}, floor)
	result, _ := table.Apply(0, c.Encode())
	return DecodeResult(result)
}

// Tokens of a table are not below the floor of any member of the view in which it begins, whichever
// member is the first to take a lease: the processes of an earlier table may have been others.
func TestTokensAreNotBelowTheFloorOfAnyMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, highest := []string{}, uint64(0)
		floors := map[string]uint64{}
		for i := range rapid.IntRange(1, 5).Draw(t, "members") {
			name := fmt.Sprint("m", i)
			members, floors[name] = append(members, name), rapid.Uint64Range(0, 100).Draw(t, "floor")
			highest = max(highest, floors[name])
		}
		table := New()
		if v, _ := acquire(New(), 1000); v != Early {
			t.Fatalf("a lease of a table without a base: verdict %d", v)
		}
		for ready := false; !ready; {
			member := rapid.SampledFrom(members).Draw(t, "member")
			var c Command
			var wait Time
			c, wait, ready = table.Prepare(0, member, floors[member], members)
			if ready || wait > 0 {
				continue
			}
			copies := rapid.IntRange(0, 2).Draw(t, "copies") // lost, or sent again
			for range copies {
				table.Apply(0, c.Encode())
			}
			if rapid.Bool().Draw(t, "restore") {
				var b bytes.Buffer
				_ = table.Snapshot(&b)
				table = New()
				if err := table.Restore(0, &b); err != nil {
					t.Fatal(err)
				}
			}
		}
		first := floors[rapid.SampledFrom(members).Draw(t, "first")]
		if v, token := acquire(table, first); v != OK || token < highest {
			t.Fatalf("verdict %d, token %d below the floor %d", v, token, highest)
		}
	})
}

// A process waits for the floors of members for a while only: they may be without leases.
func TestMembersWithoutFloors(t *testing.T) {
	table := New()
	c, _, _ := table.Prepare(100, "a", 7, []string{"a", "b"})
	table.Apply(100, c.Encode())
	if _, wait, prepared := table.Prepare(101, "a", 7, []string{"a", "b"}); prepared || wait != floorPatience-1 {
		t.Errorf("waits for %d, prepared: %v", wait, prepared)
	}
	c, wait, _ := table.Prepare(100+floorPatience, "a", 7, []string{"a", "b"})
	if wait != 0 || c.Op != Agree {
		t.Fatalf("got %+v, waits for %d", c, wait)
	}
	table.Apply(0, c.Encode())
	if table.Base() != 7 {
		t.Errorf("base %d", table.Base())
	}
}

// Commands of an earlier table do not give a new one its base, or a lease below it.
func TestCommandsOfAnEarlierTable(t *testing.T) {
	before := New()
	bring, _, _ := before.Prepare(0, "a/1", 5, nil)
	before.Apply(0, bring.Encode())
	agree, _, _ := before.Prepare(0, "a/1", 5, []string{"a/1"})
	before.Apply(0, agree.Encode())
	taken, _ := before.Take(0, "n", Entry{TTL: 10, Holder: "x"}, 0)

	table := New()
	bring, _, _ = table.Prepare(0, "a/2", 9, nil)
	table.Apply(0, bring.Encode())
	table.Apply(0, agree.Encode())
	if table.Base() != 0 {
		t.Errorf("base %d by an earlier table's command", table.Base())
	}
	agree, _, _ = table.Prepare(0, "a/2", 9, []string{"a/2"})
	table.Apply(0, agree.Encode())
	result, _ := table.Apply(0, taken.Encode())
	if v, token := DecodeResult(result); v != Early {
		t.Errorf("verdict %d, token %d", v, token)
	}
}
