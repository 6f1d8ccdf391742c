package lease

import (
	"io"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/services/leases"
	"github.com/pleach-go/pleach/internal/services/tokens"
)

// Table is the leases of a group. It is a machine for package replicated, whose methods Apply,
// Snapshot and Restore are for that package alone.
type Table struct {
	now     func() time.Duration // since any moment, at the rate of this process's clock
	changed notify.Notifier

	mu    sync.Mutex // guards the rest
	state *leases.Table
	mark  *tokens.Mark
	fault error  // why the last token is not covered by the mark; nil: it is
	last  uint64 // the highest token that this process has seen
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

// keep has a file know the tokens of the table.
func (t *Table) keep(mark *tokens.Mark) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mark = mark
	return mark.Cover(t.state.Token())
}

// floor returns a number that new tokens are not below, by the file and by what this process has
// seen: the table may be replaced by one that began later.
func (t *Table) floor() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.mark.Floor(), t.last+1)
}

// covered returns why the file does not know the last token.
func (t *Table) covered() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fault
}

// Begin says that the table is empty because no member of the group knew the leases, as when all
// processes were started again. A process from before may still hold a lease, until its TTL is over.
// So the table gives a lease when the lease's own TTL, and grace at least, has passed since. Grace
// is the longest TTL of the group, or one that is common, if the holders of a lease with a longer
// one all use the same. Call it in [replicated.SharedConfig.Begin], with the view. All processes
// use the same grace.
func (t *Table) Begin(view uint64, grace time.Duration) {
	t.use(func(now leases.Time, state *leases.Table) { state.Begin(now, view, leases.Time(grace)) })
	t.changed.Notify()
}

// Apply applies a command. It implements [replicated.Machine].
func (t *Table) Apply(b []byte) []byte {
	var result []byte
	t.use(func(now leases.Time, state *leases.Table) {
		var changed bool
		result, changed = state.Apply(now, b)
		if changed {
			t.last = max(t.last, state.Token())
			t.fault = t.mark.Cover(state.Token())
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
	t.use(func(now leases.Time, state *leases.Table) {
		err = state.Restore(now, r)
		t.last = max(t.last, state.Token())
	})
	t.changed.Notify()
	return err
}
