// Package replicated keeps state machines the same on all members of a group.
//
// It survives the death of any minority of the members, one after the other down to the last
// two, and partitions, of which the side with a majority continues; it does not survive the death
// of a majority at once, or of all members: the state is in memory only.
//
//	replica, err := replicated.Join(ctx, replicated.Config{
//		Group: config, Machines: map[string]replicated.Machine{"table": table},
//	}, seeds...)
//	result, err := replica.Propose(ctx, "table", command)  // applied by all members, once
//	err = replica.Read(ctx, func() { value = table["key"] })
//
// Commands are applied in one order, that of package ordered with Safe (Schneider 1990,
// Implementing Fault-Tolerant Services Using the State Machine Approach). Propose returns the
// result when this process has applied the command. A command is applied once, although it is
// sent again when a leader dies or this process is removed and joins again: members keep the
// last results of each process that proposes, by its sequence numbers (Ongaro 2014, Consensus:
// Bridging Theory and Practice, §6.3). Propose and Read are linearizable.
//
// A process that joins gets a snapshot of all machines, and the commands behind it. Where the
// state must survive all processes, use etcd or a database: see docs/adr/0064.
package replicated
