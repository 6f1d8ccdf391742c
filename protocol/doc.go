// Package protocol is the contract between a protocol and whoever drives it.
//
// A protocol is a state machine, one per process and operation. It does no
// I/O, starts no goroutine, reads no clock and draws no global randomness, so
// a simulator and a socket can drive the very same code. The driver owns time,
// ports and wires; the machine owns decisions.
//
// A driver has three duties:
//
//   - In: hand every message that arrives to [Machine.Receive], and, where the
//     machine is an [Observer], every report of a failure detector to
//     [Observer.Report].
//   - Out: whenever the send port is free and nothing else is due at this
//     instant, ask [Machine.Next] and carry the answer out.
//   - Order: at one instant all receives come before any Next, so that what has
//     just arrived can still stop a send.
//
// Machines are pulled, never push: checked correction chooses each destination
// from what has arrived so far, so the choice must be made as late as possible.
package protocol
