// Package stream carries many concurrent broadcasts between the members of a group:
// every live member gets every message of a live root exactly once, in the order in
// which the root sent them.
//
// A [Member] is one process's part, a state machine without I/O. It forwards every
// message along the root's tree at once, and correction follows (package broadcast).
// Members share no clock, so correction overlaps with dissemination. Five techniques
// keep it cheap. The offers, requests and adoptions among them are IHAVE, IWANT and
// GRAFT of Plumtree (Leitão, Pereira & Rodrigues, "Epidemic Broadcast Trees", 2007), on
// a tree that is computed instead of learned.
//
//   - Offers instead of copies. A correction message carries the payload only if that
//     is small. Otherwise it is an offer (IHAVE), and a member that lacks the message
//     requests it (IWANT).
//   - Cumulative offers. An offer says "of root r, I have everything before s", so one
//     offer corrects a whole burst.
//   - Delayed correction. It lets the tree finish first. Then one offer goes left, and
//     offers to the right follow only if the right neighbor's own offer does not arrive
//     within the usual time.
//   - Fostering. A member that receives by its neighbor's corrections, because its
//     parent in the tree is dead, asks that neighbor to adopt it (GRAFT) and to send it
//     everything from then on.
//   - Pulling. Segments are numbered per root, so a member detects a hole and requests
//     the missing segments from a member that offered them: a negative acknowledgment,
//     answered by a retransmission, the repair.
//
// A message longer than a segment travels as several segments, each forwarded as it
// arrives. Many small messages of a burst travel as one segment, a batch. Segments are
// what is numbered, sent, offered and kept.
//
// Flow control is end to end (window.go): a root has a window of bytes in flight, which
// the credits of all members move on. So a slow member or program slows the root down,
// and no member loses what another has sent.
//
// Views follow view synchrony and its flush protocol (view.go).
//
// # Driving a Member
//
// A driver calls [Member.Write] for the program, and [Member.Receive], [Member.Up],
// [Member.Down], [Member.Writable] and [Member.SendFailed] for what the transport
// reports. After each of these calls, and when [Member.Deadline] has come, it calls
// [Member.Next] until there is nothing to send, then [Member.Deliver] until there is
// nothing to deliver, and finally [Member.Settle]. A Member is not safe for concurrent
// use.
package stream
