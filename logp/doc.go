// Package logp drives protocols under a LogP clock: a discrete-event simulator
// that calls the very machines real processes run.
//
// # The model
//
// Time is an integer. A send that starts at t keeps the sender's port busy for
// [t, t+o). The message may start to be received at t+o+L, keeps the receive
// port busy for o, and is processed at the end: one hop takes 2o+L. A process
// has one send port and one receive port; they overlap freely. The gap g ≤ o
// never binds (Corrected Trees §2.2).
//
//   - Arrivals at a busy receive port wait. Among the waiting, the one whose send
//     was decided first goes first.
//   - At one instant, receives end before sends start: what has just arrived can
//     still stop a send. Machines are asked in ascending rank.
//   - A message to a dead process costs its sender o, counts as a message, and
//     counts as activity until it arrives.
//
// # The parts
//
// A [Simulator] runs one operation after another in memory it keeps. [Sparse]
// shows the same of one kind of broadcast, for a small part of the work. [Repeat]
// spreads seeded runs over all cores; the results depend on the seed alone, not
// on the number of cores. [Faults] say which processes are dead, and which die
// when. A [Result] holds what one run showed, a [Distribution] what many did. A
// trace of all events is there for tests and pictures ([Event]).
package logp
