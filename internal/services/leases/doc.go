// Package leases is the leases of a group as a state machine: what holders ask for in one order.
//
// The state contains no times. Each process records, by its own clock, when it has last seen a
// lease renewed, and takes it over only when that is longer ago than the TTL and the drift of
// clocks (Gray & Cheriton 1989, Leases: An Efficient Fault-Tolerant Mechanism for Distributed File
// Cache Consistency). The holder counts the TTL from before it has asked, so it stops first.
package leases
