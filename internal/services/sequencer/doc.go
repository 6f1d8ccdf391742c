// Package sequencer puts the messages of a group into one order: a state machine without I/O.
//
// It is the ordered multicast of virtual synchrony, ABCAST (Birman & Joseph 1987, Reliable
// Communication in the Presence of Failures), by a fixed sequencer (Défago, Schiper & Urbán
// 2004, Total Order Broadcast and Multicast Algorithms, §4.1). Every member forwards its
// messages to the leader of the view, and the leader broadcasts them. The broadcasts of one
// member arrive in one order everywhere, so the order of the leader's broadcasts is the order
// of all messages, and their number is the count of those before.
//
// View synchrony does the rest. All members that continue to the next view have received the
// same broadcasts of the old leader, so they have numbered the same messages. What was not
// numbered is with its origin, which forwards it to the next leader. A broadcast names the
// view that its sender leads, and is ignored in any other view: a process that is slow to
// learn that it leads no longer numbers nothing.
//
// With Safe, members acknowledge to the leader what they have received, and the leader tells
// them how far a majority of the view's voters has come. Every view that follows is decided by a
// majority of them, of which one has that prefix, so that the view begins behind it: what was
// delivered anywhere is delivered everywhere. The leader is the voter with the lowest rank.
//
// # Driving a Machine
//
// In: [Machine.View] for each view, [Machine.Receive] for each broadcast of the group, in the
// order of their views and of each sender, own ones included; [Machine.Accept] for what
// another member has forwarded, [Machine.Acknowledge] for acknowledgments, [Machine.Submit]
// for messages of this process. Out, whenever the driver is free to send: [Machine.NextCast],
// [Machine.NextForward] and [Machine.NextAck], one at a time of each, and after each
// [Machine.CastDone] or, if it has failed, [Machine.ForwardFailed] and [Machine.AckFailed]. A Machine is not safe for
// concurrent use.
package sequencer
