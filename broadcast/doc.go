// Package broadcast holds corrected broadcast as state machines without I/O:
// the message is first disseminated as fast as possible, then correction closes
// the gaps that dead processes left on the ring (Corrected Trees, PPoPP 2019;
// Corrected Gossip, IPDPS 2017).
//
// A [Config] says how; [NewPlan] checks that it makes sense; a [Plan] makes a
// [Process] for one rank, or a [Group] of all of them for a simulator. A Process
// is a [protocol.Machine]: its driver owns the clock and the network.
//
// # What is promised
//
// With a live root, every live process gets the message exactly once if at most this
// fails:
//
//	correction     fails                           before  during
//	none           no process                      –       –
//	Opportunistic  no gap longer than 2d is left   yes     –
//	Optimized      no process (see its comment)    –       –
//	Safe           as Opportunistic                yes     –
//	Checked        any process but the root        yes     –
//	Delayed        any process but the root        yes     –
//	FailureProof   any before, f during            yes     yes
//
// Before and during mean: before correction starts, and while it runs. The
// baselines [BinomialGraph] and [Restarting] promise it without correction, the
// first for fewer than log2 P dead, the second with a failure detector.
//
// # Where to read on
//
//   - process.go: a process, from uncolored to finished. All else are its states.
//   - tree.go, gossip.go, rounds.go: dissemination. ack.go, binomialgraph.go and
//     restarting.go: what corrected broadcast is compared with.
//   - checked.go, opportunistic.go, optimized.go, safe.go, delayed.go,
//     failureproof.go: correction, one file each.
//   - plan.go: which of them go together. group.go: all processes at once.
//   - message.go, side.go, rng.go: what they share.
package broadcast
