// Package stream carries many broadcasts, from many roots at once, between the
// members of a group: every live member gets every message of a live root
// exactly once, in the order the root sent them.
//
// A [Member] is one process's part, a state machine without I/O. It sends every
// message along the root's tree at once, and lets correction follow: no clock is
// common, so correction is overlapped, and it is made cheap by five things.
//
//   - Offers instead of copies. A correction message carries the payload only if
//     it is small; otherwise it is an offer, and who lacks the message asks.
//   - Cumulative offers. An offer says "of root r, I have everything before s",
//     so that one corrects a whole burst.
//   - Delayed correction. It lets the tree finish first; then one offer goes
//     left, and further ones only if the neighbor's own does not come in the time
//     it usually takes.
//   - Orphans are fostered. Who lives on a neighbor's corrections, because its
//     parent in the tree is dead, asks to be sent everything from there.
//   - Holes are asked for. Messages are numbered per root, so who has missed one
//     knows it, and asks whoever offered it.
//
// Messages longer than a segment travel as several, each forwarded as it comes;
// many small ones that come in a burst travel as one, a batch (batch.go). Segments
// are what is numbered, sent, offered and kept.
//
// Whoever is slow slows the root down: a member takes in nothing more while it waits
// for a child, for its program or for a laggard, for a while each (pressure.go).
//
// # Driving a Member
//
// In: [Member.Write], [Member.Receive], [Member.Up], [Member.Down], [Member.Room] and
// [Member.Unsent] for what the transport reports. Out, after each of these and
// whenever [Member.Deadline] has come: [Member.Next] until it has nothing left to
// send, then [Member.Deliver] until it has nothing left to deliver. While
// [Member.ThrottledUntil], a driver takes in nothing more. A Member is
// not for concurrent use.
package stream
