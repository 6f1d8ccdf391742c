// Package launch starts processes on this host, or on several by ssh, feeds them,
// injects faults into them and reaps them.
//
// [Listen] opens a listening socket for every rank before the first process
// starts, so that all addresses are known and no connection is refused.
// [Sockets.Start] starts the [Process] of one rank. It inherits its socket and
// learns its rank and all addresses from its environment, in the variables that
// package bootstrap reads.
//
// [Run] is what pleach run does on top of that: it starts all ranks of a job,
// merges what they print, injects a schedule of faults, passes signals on and
// returns a [Report]. [Serve] is its end on another host. Benchmarks and experiments
// use processes directly.
package launch
