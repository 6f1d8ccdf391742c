// Package lifecycle decides how a process becomes a member of its group, and how one that
// was a member finds its place again.
//
// A process with a disk has a place in a view: the member of the view whose nonce the
// disk has. It holds its place as a restarted voter, and votes for it. When many processes crash
// at once, they come back with places in different views: one that was killed between
// the decision of a view and its first save knows neither the view nor its own
// incarnation there. So processes that are not members introduce themselves to each other
// (see [control.Introduction]), and take the place that the latest view has for them. Addresses
// are hints: a process is found by its ID, through the seeds that it is given now.
//
// # Why a place may be taken
//
// A vote is sent only after it is saved, and a disk saves the nonce under which its
// process asks to join before any process hears of it. So a member (nonce, incarnation)
// of a view has voted in that view only if a disk with the nonce says so. A process whose
// disk has the nonce, and no vote in the view, may hold the place with no votes.
//
// # When a place is given up
//
// Votes of members that have left, or whose disks are lost, do not come back. A process
// that answers under the ID of a member with another nonce shows that. When those
// that are left cannot decide the next view, the restarted voters of the view wait in vain. They give
// their places up and are candidates like any other, which is as safe as their death.
//
// # Driving a Machine
//
// A [Machine] is a process from its start until it is a member: it holds a place, joins
// members, or begins a group with others. In: [Machine.Replied] for the result of a
// request, [Machine.Requested] for the request of another process, [Machine.Moved],
// [Machine.Admitted] and [Machine.Over] for the restarted voter that the driver runs. Out, after each of these and at
// [Machine.Deadline]: [Machine.Next] until it returns no action. A Machine does no I/O, and
// is not safe for concurrent use.
//
// From then on, a [Member] decides how the process communicates with processes outside its view.
package lifecycle
