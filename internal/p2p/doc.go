// Package p2p carries messages from one member to another: each exactly once,
// in the order they were sent, as long as both are in the view. It is what
// collectives stand on, where a transport may lose what it was given.
//
// A [Endpoint] is one member's part, a state machine without I/O. It keeps a
// channel for every other member of the view:
//
//   - Messages are cut into segments, which are numbered. The other side takes
//     them only in order, and says how far it has come with every frame that it
//     sends, or after a moment if it has nothing to send.
//   - Nothing is sent again on a guess. When a connection is new, when no word
//     has come for a while, and when frames were dropped, the other side is
//     asked how far it has come; what it lacks of what was sent before the
//     question is sent again. So a slow peer gets no copies.
//   - So many bytes may be on their way, and so many more may wait: then
//     [ErrBusy] says that the sender has to wait too.
//   - What was sent is not copied but kept by reference until it has arrived:
//     it must not be changed.
//
// A peer that is not in the view any more has no channel: sending to it fails
// with a [*GoneError]. One that has come back, as another incarnation, gets a
// channel that starts anew; frames of and for the old one are void, because every
// frame names the sessions it is between.
//
// # Driving a Courier
//
// In: [Endpoint.Install] for who is there, [Endpoint.Send], and [Endpoint.Receive],
// [Endpoint.Up], [Endpoint.Down], [Endpoint.Room] and [Endpoint.Unsent] for what the
// transport reports. Out, after each of these and whenever [Endpoint.Deadline] has
// come: [Endpoint.Next] until it has nothing left to send, then [Endpoint.Deliver]
// until it has nothing left to deliver. A Courier is not for concurrent use.
package p2p
