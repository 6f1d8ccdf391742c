// Package membership agrees on views: numbered sets of members, the same for all
// who are in them. A view is agreed, not guessed; a suspicion is only a reason to
// propose another one.
//
// A [Machine] is one member's part, a state machine without I/O. The lowest rank
// that is not suspected coordinates a change in three traversals of a tree laid
// over those who take part (Varma 2006, the membership thesis, §3.1). In a small
// group everybody else is its child (see [Config.Flat]):
//
//   - Gather. Down: prepare; every member promises the ballot and freezes its
//     messages. Up: who has promised, what they have, what was accepted before.
//   - Propose. Down: the next view, and the cut where it begins. Every member
//     gets what it lacks up to the cut, then accepts. Up: who has.
//   - Commit, by corrected broadcast: what a majority has accepted is the view. In
//     a small group it is told to each one, and asked for by who misses it.
//
// With its ballots this is single-decree Paxos for every view's number, so two
// coordinators at once, a dead one's successor, lost and late frames do no harm.
//
// # What is promised
//
//   - Agreement: no two members install different views of one number, and each
//     view begins with a majority of the one before (exactly half counts if it
//     holds the lowest rank), unless [Config.NoQuorum] is set.
//   - Same-view delivery: who installs two views in a row has delivered the same
//     messages in the first as everybody else who does, if the [Log] keeps its word.
//   - Self-inclusion: a member installs only views that it is in. Who is not in
//     the next one learns that it is [Evicted], or that it has [Left].
//   - Progress: once suspicions are right and frames get through now and then,
//     the view comes to hold exactly those who live, have joined and not left.
//
// # Driving a Machine
//
// In: [Machine.Receive], [Machine.Up] for what the transport reports;
// [Machine.Suspect], [Machine.Trust] for what a detector does; [Machine.Join] and
// [Machine.Leave] for what people want; [Machine.Settle] when the log may have got
// what it was to flush. Out, after each of these and whenever [Machine.Deadline]
// has come: [Machine.Next] until it has nothing left to send, then
// [Machine.Answers] and [Machine.State]. The machine calls its [Log] from within
// these, which so learns of every view. It is not for concurrent use.
//
// A frame may be lost, duplicated, late or out of order. It must come from the
// rank it is said to come from. A frame may go to a rank that is no longer in the
// view: to those who were removed, and as an answer to whoever has just sent one,
// which then goes to that very process. A driver that cannot reach a rank drops
// the frame, and may call Up once it can.
//
// A joiner knocks at any member, whose driver calls Join. The answer holds the
// view to begin with: with it the joiner makes its own machine.
//
// # Where to read on
//
//   - machine.go: what comes in and goes out; timer.go: what happens by itself.
//   - round.go: what a member holds about the next view, and its invariants.
//   - lead.go, gather.go, propose.go, commit.go, spread.go: a change, in order.
//   - suspicion.go, errand.go, join.go, leave.go: reasons for one; place.go:
//     which rank a joiner gets.
//   - silence.go: members that do not answer, and do not hold up the others.
//   - status.go: how those who were left behind catch up.
//   - memo.go: what is worked out once for all, and siblings in a simulator.
package membership
