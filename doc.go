// Package pleach is group communication that finishes although members die.
//
// A message is sent along a tree, as fast as the network allows. Members that
// died leave gaps, and the survivors next to a gap on a ring close it: each
// offers the message to its neighbors, further and further out, until it has
// heard from a live one on that side. No failure detector, acknowledgment,
// timeout or restart is needed to reach every live member.
//
// The parts that exist:
//
//   - [github.com/pleach-go/pleach/topology]: trees and the ring as arithmetic.
//   - [github.com/pleach-go/pleach/protocol]: the contract between a protocol
//     and whoever drives it.
//   - [github.com/pleach-go/pleach/broadcast]: dissemination and correction as
//     state machines without I/O.
//   - [github.com/pleach-go/pleach/logp]: a simulator that drives them under a
//     LogP clock, with faults.
//   - [github.com/pleach-go/pleach/cmd/pleach]: the command, which shows trees
//     and simulates broadcasts.
//
// Group communication between real processes is what all this is built for. It
// comes next, driving the same machines, and will be what programs import from
// this package. Until then the package is empty.
package pleach
