// Package silent measures what members cost that die without a sign: their processes are
// stopped (SIGSTOP), so that their sockets stay open and accept what is sent to them. Nobody
// knows of such a death until a failure detector tells.
//
// Every member is a process of its own. Rank 0 broadcasts, at a steady pace or as fast as it
// can. [Run] stops members and compares what the live ones receive before and after. Each
// [System] is measured in turn, run by run, so that other load of the host falls on all alike.
package silent
