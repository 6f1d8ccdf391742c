package lease

// The leases of a group as a state machine: what holders ask for in one order. It knows no time.
// Beside the state, each process notes by its own clock when it has last seen a lease renewed.

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/notify"
	"github.com/pleach-go/pleach/internal/wire"
)

// Limits of a table.
const (
	maxName   = 255     // bytes of a name
	maxLeases = 1 << 16 // leases that are held, or whose holders are gone
)

// Table is the leases of a group. It is a machine for package replicated, whose methods Apply,
// Snapshot and Restore are for that package alone.
type Table struct {
	now     func() time.Duration // since any moment, at the rate of this process's clock
	changed notify.Notifier

	mu     sync.Mutex // guards the rest
	token  uint64     // the last one
	leases map[string]entry
	seen   map[string]time.Duration // when this process has seen the entry change
}

// entry is a lease that is held.
type entry struct {
	Token    uint64        `json:"token"`
	Renewals uint64        `json:"renewals"`
	TTL      time.Duration `json:"ttl"`
	Holder   string        `json:"holder"`
}

// NewTable returns a table without leases.
func NewTable() *Table {
	began := time.Now()
	return newTable(func() time.Duration { return time.Since(began) })
}

func newTable(now func() time.Duration) *Table {
	return &Table{now: now, leases: make(map[string]entry), seen: make(map[string]time.Duration)}
}

// operation is what a command does.
type operation uint8

const (
	opAcquire operation = iota + 1
	opRenew
	opRelease
)

// command is a command of a table.
type command struct {
	op   operation
	name string
	// entry is the lease that is asked for, without Token and Renewals, which are those of the
	// lease that opRenew and opRelease are for, and that opAcquire takes over. If Token is 0,
	// opAcquire takes over none.
	entry
	floor   uint64 // opAcquire: what the token is not below
	expired bool   // opRelease: the lease has expired, so Renewals count
}

func (c *command) encode() []byte {
	b := wire.AppendBytes([]byte{byte(c.op)}, []byte(c.name))
	b = wire.AppendUint64(wire.AppendUint64(wire.AppendUint64(b, c.Token), c.Renewals), uint64(c.TTL))
	b = wire.AppendUint64(b, c.floor)
	if b = append(b, 0); c.expired {
		b[len(b)-1] = 1
	}
	return append(b, c.Holder...)
}

func decodeCommand(b []byte) (c command, err error) {
	d := wire.NewDecoder(b)
	c.op, c.name = operation(d.Uint8()), string(d.Bytes())
	c.Token, c.Renewals, c.TTL = d.Uint64(), d.Uint64(), time.Duration(d.Uint64())
	c.floor = d.Uint64()
	c.expired, c.Holder = d.Uint8() == 1, string(d.Rest())
	return c, d.Finish()
}

// verdict is the first byte of a result; that of verdictOK has the token behind it.
type verdict byte

const (
	verdictOK verdict = iota + 1
	verdictNo
	verdictFull
)

func decodeResult(b []byte) (verdict, uint64) {
	d := wire.NewDecoder(b)
	return verdict(d.Uint8()), d.Uint64()
}

// Apply applies a command. It implements [replicated.Machine].
func (t *Table) Apply(b []byte) []byte {
	c, err := decodeCommand(b)
	if err != nil {
		return wire.AppendUint64([]byte{byte(verdictNo)}, 0)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.apply(&c)
	if v == verdictOK {
		t.changed.Notify()
	}
	return wire.AppendUint64([]byte{byte(v)}, t.leases[c.name].Token)
}

func (t *Table) apply(c *command) verdict {
	e, held := t.leases[c.name]
	same := held && e.Token == c.Token
	switch {
	case c.op == opAcquire && !held && len(t.leases) >= maxLeases:
		return verdictFull
	case c.op == opAcquire && (!held || same && e.Renewals == c.Renewals):
		t.token = max(t.token+1, c.floor)
		t.set(c.name, entry{Token: t.token, TTL: c.TTL, Holder: c.Holder})
	case c.op == opRenew && same:
		e.Renewals++
		t.set(c.name, e)
	case c.op == opRelease && same && (!c.expired || e.Renewals == c.Renewals):
		delete(t.leases, c.name)
		delete(t.seen, c.name)
	default:
		return verdictNo
	}
	return verdictOK
}

func (t *Table) set(name string, e entry) { t.leases[name], t.seen[name] = e, t.now() }

// look returns a lease that is held, and when this process has last seen it change.
func (t *Table) look(name string) (e entry, seen time.Duration, held bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, held = t.leases[name]
	return e, t.seen[name], held
}

// names returns the names of all leases.
func (t *Table) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.leases))
}

// snapshot is the state of a table.
type snapshot struct {
	Token  uint64           `json:"token"`
	Leases map[string]entry `json:"leases"`
}

// Snapshot writes the state. It implements [replicated.Machine].
func (t *Table) Snapshot(w io.Writer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return json.NewEncoder(w).Encode(snapshot{t.token, t.leases})
}

// Restore replaces the state. It implements [replicated.Machine].
func (t *Table) Restore(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	var s snapshot
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token, t.leases, t.seen = s.Token, make(map[string]entry), make(map[string]time.Duration)
	for name, e := range s.Leases {
		t.set(name, e) // its holder may have renewed it just before the snapshot
	}
	t.changed.Notify()
	return nil
}
