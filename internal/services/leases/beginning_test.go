package leases

import (
	"bytes"
	"testing"
)

// A table that began empty gives no lease until the TTL has passed since, and the grace at least. A
// process that joins counts from there, unless another one has told all members that it has passed.
// Case 73.
func TestTableThatBeganEmptyWaits(t *testing.T) {
	const id, grace = 7, 10
	begun := func(now Time) *Table {
		table := prepared(New())
		table.Begin(now, id, grace)
		return table
	}
	joined := func(of *Table, now Time) *Table {
		var b bytes.Buffer
		table := New()
		if err := of.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		if err := table.Restore(now, &b); err != nil {
			t.Fatal(err)
		}
		return table
	}
	for _, c := range []struct{ ttl, wait Time }{{1, grace}, {grace, grace}, {3 * grace, 3 * grace}} {
		table := begun(100)
		wanted := Entry{TTL: c.ttl, Holder: "x"}
		if wait, early := table.Early(100, c.ttl); !early || wait <= c.wait {
			t.Errorf("TTL %d: waits for %d (%v), want more than %d", c.ttl, wait, early, c.wait)
		}
		if command, ok := table.Take(100+c.wait, "a", wanted, 0); ok {
			t.Errorf("TTL %d: taken too early by %+v", c.ttl, command)
		}
		late := joined(table, 105)
		if _, ok := late.Take(101+c.wait, "a", wanted, 0); ok {
			t.Errorf("TTL %d: a process that has joined takes a lease before it has waited itself", c.ttl)
		}
		elapsed, ok := table.Take(101+c.wait, "a", wanted, 0)
		if !ok || elapsed.Op != Elapsed {
			t.Fatalf("TTL %d: got %+v, %v", c.ttl, elapsed, ok)
		}
		for _, member := range []*Table{table, late} {
			member.Apply(101+c.wait, elapsed.Encode())
			acquire, ok := joined(member, 101+c.wait).Take(101+c.wait, "a", wanted, 0)
			if !ok || acquire.Op != Acquire {
				t.Fatalf("TTL %d: got %+v, %v", c.ttl, acquire, ok)
			}
			if result, _ := member.Apply(102+c.wait, acquire.Encode()); Verdict(result[0]) != OK {
				t.Errorf("TTL %d: verdict %d", c.ttl, result[0])
			}
		}
		if _, early := table.Early(1000, c.wait+1); !early {
			t.Errorf("a longer TTL than %d does not wait", c.wait)
		}
	}
}

// Commands from before a table began count for nothing in it: the lease that one of them takes is
// not used, and the time that another has seen pass was that of another table.
func TestCommandsFromBeforeTheTable(t *testing.T) {
	before := New()
	acquire, _ := before.Take(0, "a", Entry{TTL: 10, Holder: "x"}, 0)
	before.Begin(0, 1, 10)
	elapsed, _ := before.Take(100, "a", Entry{TTL: 10, Holder: "x"}, 0)
	table := New()
	table.Begin(100, 2, 10)
	if result, _ := table.Apply(100, elapsed.Encode()); Verdict(result[0]) != No {
		t.Errorf("the time of another table: verdict %d", result[0])
	}
	result, changed := table.Apply(100, acquire.Encode())
	if v, token := DecodeResult(result); v != Early || token != 1 || !changed {
		t.Errorf("a lease that was asked for before the table began: verdict %d, token %d, changed %v", v, token, changed)
	}
}
