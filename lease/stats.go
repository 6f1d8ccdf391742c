package lease

import "sync/atomic"

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
func (c *counters) note(op operation, v verdict) {
	switch {
	case v == verdictOK && op == opAcquire:
		c.acquired.Add(1)
	case v == verdictOK && op == opRenew:
		c.renewed.Add(1)
	case v == verdictNo && op != opAcquire:
		c.refused.Add(1)
	}
}

// Stats returns counters of this process.
func (l *Leases) Stats() Stats {
	l.table.mu.Lock()
	n := len(l.table.leases)
	l.table.mu.Unlock()
	return Stats{n, l.counters.acquired.Load(), l.counters.renewed.Load(), l.counters.refused.Load()}
}
