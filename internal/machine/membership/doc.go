// Package membership agrees on views: numbered sets of members that are the same
// at every member. A view is agreed, not guessed. A suspicion is only a reason to
// propose another view.
//
// The next view is decided by single-decree Paxos, one instance per view number
// (Lamport 1998, The Part-Time Parliament). Every member is an acceptor, of which the
// voters count, and the lowest voter that is not suspected is the proposer, called the
// coordinator. So two
// coordinators at once, the successor of a dead coordinator, and lost or late frames
// do no harm. Around it runs the flush protocol of view synchrony (Birman & Joseph
// 1987; Chockler, Keidar & Vitenberg 2001): members stop sending and delivering
// (freeze), fetch the messages of the old view that they lack (flush), then begin
// the new view (install).
//
// A [Machine] is one member, a state machine without I/O. The coordinator changes
// the view in three traversals of a tree over the participants of its ballot (Varma
// 2006, the membership thesis, §3.1). In a small group every other participant is
// its child (see [Config.FlatThreshold]):
//
//   - Prepare. Down: every participant promises the ballot and freezes its messages.
//     Up: the members that have promised, their positions in the streams, and the
//     value that was accepted before.
//   - Propose. Down: the next view, and the cut where it begins. Every participant
//     fetches what it lacks up to the cut, then accepts. Up: the members that have
//     accepted.
//   - Commit, by corrected broadcast: the value that a majority has accepted is the
//     view. In a small group the coordinator sends it to each member, and a member
//     that misses it asks for it.
//
// # Guarantees
//
//   - Agreement: no two members install different views of one number, and each
//     view begins with a majority of the voters of the one before (exactly half
//     counts if it holds the lowest voter, or with [Config.Arbiter] if that grants
//     it the view), unless [Config.NoQuorum] is set.
//   - Same-view delivery (view synchrony): all members that install two views in a
//     row have delivered the same messages in the first, if the [Log] keeps its
//     contract.
//   - Self-inclusion: a member installs only views that it is in. A member that is
//     not in the next view learns that it is [Evicted], or that it has [Left].
//   - Progress: once suspicions are right and frames get through now and then,
//     the view comes to hold exactly the processes that live, have joined and have
//     not left.
//
// # Driving a Machine
//
// In: [Machine.Receive] and [Machine.Up] for the transport; [Machine.Suspect] and
// [Machine.Trust] for a detector; [Machine.Join] and [Machine.Leave] for requests;
// [Machine.LogFlushed] when the log may have flushed; [Machine.Judge] for an
// arbiter. Out, after each of these and at [Machine.Deadline]: [Machine.Next] until
// it has nothing left to send, then [Machine.Answers], [Machine.NextClaim] and
// [Machine.State]. The machine calls its [Log] from within these methods, so the
// log learns of every view. A machine is not safe for concurrent use.
//
// A frame may be lost, duplicated, late or out of order. It must come from the
// rank that the driver names. A frame may go to a rank that is no longer in the
// view: to removed members, and as an answer to a process that has just sent a
// frame, which then goes to that very process. A driver that cannot reach a rank
// drops the frame, and may call Up once it can.
//
// A joiner sends its request to any member, whose driver calls Join. The answer
// holds the view with which the joiner makes its own machine.
//
// # Where to read next
//
//   - machine.go: input and output; timer.go: timers.
//   - acceptor.go: the state of a member about the next view, and its invariants.
//   - proposer.go, prepare.go, propose.go, commit.go, commitcast.go: a change, in
//     order; assign.go: the rank that a joiner gets.
//   - voters.go: which members count, and how their roles change; arbiter.go: which half of
//     them continues.
//   - suspicion.go, join.go, leave.go: reasons for a change; reporter.go: how the
//     coordinator learns of them; relay.go: how many reports become few.
//   - doubt.go: how a member that is cut off learns it before the others
//     install a view without it.
//   - liveness.go: which members answer, by kinds of evidence, and what follows; silence.go and
//     awaiting.go: how long this member waits for them.
//   - status.go: how members that are behind catch up.
//   - memo.go: derivations that members share, and siblings in a simulator.
package membership
