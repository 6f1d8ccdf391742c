package lease

import (
	"io"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/notify"
	"github.com/pleach-go/pleach/internal/services/leases"
)

// Table is the leases of a group. It is a machine for package replicated, whose methods Apply,
// Snapshot and Restore are for that package alone.
type Table struct {
	now     func() time.Duration // since any moment, at the rate of this process's clock
	changed notify.Notifier

	mu    sync.Mutex // guards the rest
	state *leases.Table
}

// NewTable returns a table without leases.
func NewTable() *Table {
	began := time.Now()
	return newTable(func() time.Duration { return time.Since(began) })
}

func newTable(now func() time.Duration) *Table { return &Table{now: now, state: leases.New()} }

// use calls f with the state, and the time.
func (t *Table) use(f func(now leases.Time, state *leases.Table)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(leases.Time(t.now()), t.state)
}

// Apply applies a command. It implements [replicated.Machine].
func (t *Table) Apply(b []byte) []byte {
	var result []byte
	t.use(func(now leases.Time, state *leases.Table) {
		var changed bool
		if result, changed = state.Apply(now, b); changed {
			t.changed.Notify()
		}
	})
	return result
}

// Snapshot writes the state. It implements [replicated.Machine].
func (t *Table) Snapshot(w io.Writer) error {
	var err error
	t.use(func(_ leases.Time, state *leases.Table) { err = state.Snapshot(w) })
	return err
}

// Restore replaces the state. It implements [replicated.Machine].
func (t *Table) Restore(r io.Reader) error {
	var err error
	t.use(func(now leases.Time, state *leases.Table) { err = state.Restore(now, r) })
	t.changed.Notify()
	return err
}
