package leases

// A table that begins does not know the tokens that were given before. Each process brings a floor,
// from its disk or its clock, and the table agrees on the highest as its base before any process
// uses a lease of it. Members of an earlier version, and members without leases, bring none: a
// process waits for a floor for floorPatience at most.

import (
	"maps"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
)

const floorPatience Time = 5e9

// base is what a table knows of tokens from before it began.
type base struct {
	// Number is above all of them; 0: not agreed yet.
	Number uint64 `json:"number,omitempty"`
	// Floors are those that processes have brought, until there is a number.
	Floors map[string]uint64 `json:"floors,omitempty"`
}

// Prepare returns the next command that a process proposes before it takes a lease, if the table
// has no base yet. Process is its name, floor its own floor, and members are the names of all in
// its view. If wait is not 0, the process calls again when the table changes, or after that time.
func (t *Table) Prepare(now Time, process string, floor uint64,
	members []string,
) (c Command, wait Time, prepared bool) {
	if t.base.Number > 0 {
		return c, 0, true
	}
	if _, brought := t.base.Floors[process]; !brought && len(t.base.Floors) < MaxLeases {
		return Command{Op: Bring, Entry: Entry{Holder: process}, Floor: floor}, 0, false
	}
	known, left := []byte(nil), t.floorsSince+floorPatience-now
	for _, m := range members {
		if _, brought := t.base.Floors[m]; brought {
			known = wire.AppendBytes(known, []byte(m))
		} else if left > 0 {
			return c, left, false
		}
	}
	return Command{Op: Agree, Entry: Entry{Holder: string(known)}}, 0, false
}

// bring applies a Bring command.
func (t *Table) bring(now Time, c *Command) Verdict {
	switch {
	case t.base.Number > 0:
		return No
	case len(t.base.Floors) >= MaxLeases:
		return Full
	case len(t.base.Floors) == 0:
		t.base.Floors, t.floorsSince = make(map[string]uint64), now
	}
	t.base.Floors[c.Holder] = c.Floor
	return OK
}

// agree applies an Agree command. It counts only if all processes that it names have brought a
// floor to this table: it may be one of an earlier table.
func (t *Table) agree(c *Command) Verdict {
	d := wire.NewDecoder([]byte(c.Holder))
	for d.Left() > 0 && d.Err() == nil {
		if _, brought := t.base.Floors[string(d.Bytes())]; !brought {
			return No
		}
	}
	if d.Err() != nil || len(t.base.Floors) == 0 {
		return No
	}
	t.base = base{Number: max(1, slices.Max(slices.Collect(maps.Values(t.base.Floors))))}
	return OK
}

// Base returns a number that tokens of the table are not below; 0 if it has not been agreed.
func (t *Table) Base() uint64 { return t.base.Number }
