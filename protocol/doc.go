// Package protocol is the contract between a protocol and its driver.
//
// A protocol is a state machine, one per process and operation. It does no
// I/O, starts no goroutine, reads no clock and draws no global randomness, so
// a simulator and a socket drive the same code. The driver owns time, ports and
// wires. The machine owns decisions.
//
// A driver has three duties:
//
//   - In: pass every message that arrives to [Machine.Receive] and, if the
//     machine is an [Observer], every report of a failure detector to
//     [Observer.Report].
//   - Out: whenever the send port is free and nothing else is due at this
//     instant, call [Machine.Next] and carry out the answer.
//   - Order: at one instant make all calls of Receive before any call of Next,
//     so that a message that has just arrived can still stop a send.
//
// The driver pulls; a machine never pushes. Checked correction chooses each
// destination from what has arrived so far, so the choice must be made as late
// as possible.
package protocol
