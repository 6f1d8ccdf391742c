// Package lease gives a name to at most one holder at a time: a lock that is free again when its
// holder dies.
//
//	table := lease.NewTable()
//	replica, err := replicated.Join(ctx, replicated.Config{
//		Group: config, Machines: map[string]replicated.Machine{"leases": table},
//	}, seeds...)
//	leases, err := lease.New(lease.Config{Replica: replica, Machine: "leases", Table: table})
//	held, err := leases.Acquire(ctx, "nightly report") // waits until it is free
//	for held.Valid() { … }                              // or select on held.Done()
//	err = held.Release(ctx)
//
// At no time are two leases of one name valid, as long as the clocks of any two processes run
// at rates that differ by less than Config.Drift: the time of day does not matter. The holder
// counts Config.TTL from before it asked for the lease, and any other process takes it over
// when it has seen no renewal for longer than TTL and Drift together (Gray & Cheriton 1989,
// Leases: An Efficient Fault-Tolerant Mechanism for Distributed File Cache Consistency). So the
// holder's lease expires first. A process that was stopped finds its lease expired when it looks.
//
// A process may still act on a lease that has expired since it looked, and the clock of a
// virtual machine that is suspended stands still. Where that matters, the holder sends
// [Lease.Token] with each write, and what it writes to refuses tokens lower than one that it has
// seen. Tokens rise from holder to holder.
package lease
