package leases

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// Time is that of a process's clock, since any moment.
type Time = protocol.Time

// Limits of a table.
const (
	MaxName   = 255     // bytes of a name
	MaxLeases = 1 << 16 // leases that are held, or whose holders are gone
)

// Table is the leases of a group.
type Table struct {
	// Drift is by how much the rates of two processes' clocks may differ. All processes use the
	// same.
	Drift  float64
	token  uint64 // the last one
	leases map[string]Entry
	seen   map[string]Time // when this process has seen the entry change
	begun  *beginning      // nil: no lease was held before the table began
	began  Time            // when this process has seen the table first, if begun is not nil
	base   base
	// floorsSince is when this process has first seen a floor, if base has no number.
	floorsSince Time
}

// Entry is a lease that is held.
type Entry struct {
	Token    uint64 `json:"token"`
	Renewals uint64 `json:"renewals"`
	TTL      Time   `json:"ttl"`
	Holder   string `json:"holder"`
}

// New returns a table without leases.
func New() *Table { return &Table{leases: make(map[string]Entry), seen: make(map[string]Time)} }

// Operation is what a command does.
type Operation uint8

// The operations.
const (
	Acquire Operation = iota + 1
	Renew
	Release
	Elapsed
	Bring
	Agree
)

// Command is a command of a table.
type Command struct {
	Op   Operation
	Name string
	// Entry is the lease that is asked for, without Token and Renewals, which are those of the
	// lease that Renew and Release are for, and that Acquire takes over. If Token is 0, Acquire
	// takes over none. Elapsed has the ID of the table as its token, and the time that has passed
	// as its TTL. Bring
	// has the name of a process as its holder, and Agree those of several.
	Entry
	Floor   uint64 // Acquire: what the token is not below; Bring: that of the process
	Expired bool   // Release: the lease has expired, so Renewals count
}

// Encode returns the bytes of a command.
func (c *Command) Encode() []byte {
	b := wire.AppendBytes([]byte{byte(c.Op)}, []byte(c.Name))
	b = wire.AppendUint64(wire.AppendUint64(wire.AppendUint64(b, c.Token), c.Renewals), uint64(c.TTL))
	b = wire.AppendUint64(b, c.Floor)
	b = append(b, 0)
	if c.Expired {
		b[len(b)-1] = 1
	}
	return append(b, c.Holder...)
}

func decode(b []byte) (c Command, err error) {
	d := wire.NewDecoder(b)
	c.Op, c.Name = Operation(d.Uint8()), string(d.Bytes())
	c.Token, c.Renewals, c.TTL = d.Uint64(), d.Uint64(), Time(d.Uint64())
	c.Floor = d.Uint64()
	c.Expired, c.Holder = d.Uint8() == 1, string(d.Rest())
	return c, d.Finish()
}

// Verdict is the first byte of a result; those of OK and Early have the token behind them.
type Verdict byte

// The verdicts.
const (
	OK Verdict = iota + 1
	No
	Full
	// Early is that of a lease which was given too early, to a process that has not waited until
	// leases from before the table have ended, or that does not know the base of its tokens: the
	// process must not use it. Members of an earlier version give it as well, so the lease is in
	// the table.
	Early
)

// DecodeResult reads the result of a command.
func DecodeResult(b []byte) (Verdict, uint64) {
	d := wire.NewDecoder(b)
	return Verdict(d.Uint8()), d.Uint64()
}

// Apply applies a command, and returns the result. It reports whether that has changed a lease.
func (t *Table) Apply(now Time, b []byte) (result []byte, changed bool) {
	v := No
	c, err := decode(b)
	if err == nil {
		v = t.apply(now, &c)
	}
	return wire.AppendUint64([]byte{byte(v)}, t.leases[c.Name].Token), v == OK || v == Early
}

func (t *Table) apply(now Time, c *Command) Verdict {
	e, held := t.leases[c.Name]
	same := held && e.Token == c.Token
	switch {
	case c.Op == Acquire && !held && len(t.leases) >= MaxLeases:
		return Full
	case c.Op == Acquire && (!held || same && e.Renewals == c.Renewals):
		t.token = max(t.token+1, c.Floor)
		t.set(now, c.Name, Entry{Token: t.token, TTL: c.TTL, Holder: c.Holder})
		if t.early(c.TTL) || t.base.Number == 0 || c.Floor < t.base.Number {
			return Early
		}
	case c.Op == Renew && same:
		e.Renewals++
		t.set(now, c.Name, e)
	case c.Op == Release && same && (!c.Expired || e.Renewals == c.Renewals):
		delete(t.leases, c.Name)
		delete(t.seen, c.Name)
	case c.Op == Elapsed:
		return t.elapse(c)
	case c.Op == Bring:
		return t.bring(now, c)
	case c.Op == Agree:
		return t.agree(c)
	default:
		return No
	}
	return OK
}

func (t *Table) set(now Time, name string, e Entry) { t.leases[name], t.seen[name] = e, now }

// Look returns a lease that is held, and how long this process has to wait until it has expired if
// it is not renewed: longer than its holder. It may be taken over after that.
func (t *Table) Look(now Time, name string) (e Entry, wait Time, held bool) {
	e, held = t.leases[name]
	return e, t.remaining(t.seen[name], e.TTL, now), held
}

// remaining is how long a TTL still lasts that another process has begun to count at a time or
// before, by that process's clock.
func (t *Table) remaining(since, ttl, now Time) Time {
	return since + ttl + Time(float64(ttl)*t.Drift) - now + 1
}

// Take returns the command by which a process takes a lease that is free or has expired. If that
// is Elapsed, the process calls Take again when it is applied. It reports false if the lease is
// held, or if one from before the table may be ([Table.Early]). The table is prepared.
func (t *Table) Take(now Time, name string, wanted Entry, floor uint64) (c Command, ok bool) {
	e, wait, held := t.Look(now, name)
	early, isEarly := t.Early(now, wanted.TTL)
	switch {
	case held && wait > 0, isEarly && early > 0:
		return c, false
	case isEarly:
		return t.elapsed(wanted.TTL), true
	}
	wanted.Token, wanted.Renewals = e.Token, e.Renewals
	return Command{Op: Acquire, Name: name, Entry: wanted, Floor: max(floor, t.base.Number)}, true
}

// Expired returns the commands that remove leases which have expired, and whose holders are gone.
func (t *Table) Expired(now Time) (commands []Command) {
	for _, name := range t.Names() {
		if e, wait, _ := t.Look(now, name); wait <= 0 {
			commands = append(commands, Command{
				Op: Release, Name: name, Entry: Entry{Token: e.Token, Renewals: e.Renewals},
				Expired: true,
			})
		}
	}
	return commands
}

// Token returns the last token.
func (t *Table) Token() uint64 { return t.token }

// Names returns the names of all leases.
func (t *Table) Names() []string { return slices.Sorted(maps.Keys(t.leases)) }

// Len returns how many leases there are.
func (t *Table) Len() int { return len(t.leases) }

// snapshot is the state of a table.
type snapshot struct {
	Token  uint64           `json:"token"`
	Leases map[string]Entry `json:"leases"`
	Begun  *beginning       `json:"begun,omitempty"`
	Base   base             `json:"base,omitzero"`
}

// Snapshot writes the state.
func (t *Table) Snapshot(w io.Writer) error {
	return json.NewEncoder(w).Encode(snapshot{t.token, t.leases, t.begun, t.base})
}

// Restore replaces the state.
func (t *Table) Restore(now Time, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	var s snapshot
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil {
		return err
	}
	t.token, t.leases, t.seen = s.Token, make(map[string]Entry), make(map[string]Time)
	t.begun, t.began, t.base, t.floorsSince = s.Begun, now, s.Base, now
	for name, e := range s.Leases {
		t.set(now, name, e) // its holder may have renewed it just before the snapshot
	}
	return nil
}
