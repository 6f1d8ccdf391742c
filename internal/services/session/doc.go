// Package session decides which commands of which process are applied, and with which results,
// so that a command that comes again is applied once: a state machine without I/O.
//
// [Replicas] is the same at all members, because it follows from the commands in their order.
// [Client] is the side of a process that proposes: it numbers commands, and keeps them until it
// knows their results (Ongaro 2014, Consensus: Bridging Theory and Practice, §6.3).
package session
