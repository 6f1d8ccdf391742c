// Package p2p is a reliable channel between every two members: it delivers each
// message exactly once, in the order of its sender, as long as both members are in
// the view. The collectives and what members tell single members stand on it, because a
// transport may lose frames.
//
// An [Endpoint] is one member's side, a state machine without I/O. It keeps a
// channel to every other member of the view:
//
//   - Messages are cut into numbered segments. The receiver accepts them only in
//     order. Every frame carries a cumulative acknowledgment; a member that has
//     nothing to send acknowledges after a short delay.
//   - Nothing is retransmitted on a guess. When a connection is new, when the
//     retransmission timeout (RTO) passes, and when frames were dropped, the sender
//     polls the receiver. The RTO follows measured round trips (Jacobson 1988, Karn &
//     Partridge 1987) and doubles with each poll. The sender retransmits
//     what the receiver lacks of the segments sent before the poll. So a slow
//     receiver gets no copies. A receiver that sees a gap reports it at once, as a
//     NACK does.
//   - The bytes in flight are bounded by a window, and the queue behind it is bounded
//     too. When the queue is full, [ErrBusy] tells the sender to wait.
//   - A message is not copied but kept by reference until it has arrived. It must
//     not change until then.
//
// A member that is not in the view has no channel: Send returns a [*GoneError]. A
// member that returns with another incarnation gets a new channel. Every frame
// names the incarnations of both sides, so frames of or for another process are
// ignored.
//
// # Driving an Endpoint
//
// In: [Endpoint.Install] for the members, [Endpoint.Send], and [Endpoint.Receive],
// [Endpoint.Up], [Endpoint.Down], [Endpoint.Writable] and [Endpoint.SendFailed] for
// the events of the transport. Out, after each of these and at
// [Endpoint.Deadline]: [Endpoint.Next] until there is no frame left to send, then
// [Endpoint.Deliver] until there is no message left to deliver. An Endpoint is not
// safe for concurrent use.
package p2p
