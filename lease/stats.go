package lease

import (
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/services/leases"
)

// Stats counts what this process has done with leases.
type Stats struct {
	// Leases is how many leases of the group are held, or have holders that are gone.
	Leases int `json:"leases"`
	// Acquired counts leases that this process has acquired, for itself or its clients, and
	// Renewed its renewals.
	Acquired uint64 `json:"acquired"`
	Renewed  uint64 `json:"renewed"`
	// Refused counts renewals and releases of leases that were lost.
	Refused uint64 `json:"refused"`
}

// counters are what Stats returns.
type counters struct{ acquired, renewed, refused atomic.Uint64 }

// note counts the verdict on a command.
func (c *counters) note(op leases.Operation, v leases.Verdict) {
	switch {
	case v == leases.OK && op == leases.Acquire:
		c.acquired.Add(1)
	case v == leases.OK && op == leases.Renew:
		c.renewed.Add(1)
	case v == leases.No && (op == leases.Renew || op == leases.Release):
		c.refused.Add(1)
	}
}

// Stats returns counters of this process.
func (l *Leases) Stats() Stats {
	n := 0
	l.table.use(func(_ leases.Time, state *leases.Table) { n = state.Len() })
	return Stats{n, l.counters.acquired.Load(), l.counters.renewed.Load(), l.counters.refused.Load()}
}
