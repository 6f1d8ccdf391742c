// Package collective has operations that all processes of a job take part in, and
// that finish with the right answer although processes die.
//
//	sum, err := collective.Allreduce(ctx, world, mine, collective.Sum[float64](),
//		collective.Restore(func(ctx context.Context, task int) ([]float64, error) {
//			return load(task) // what that task would have given
//		}))
//
// A world comes from pleach.NewWorld. Every process calls the same operations in
// the same order. Calls are numbered, and every message carries what was called:
// calls that do not match are an error on all ([*MismatchError]). A call whose
// context ends says who has not arrived ([*LateError]), and ends for all others
// that have not finished it. [Reserve] lets calls go on beside each other.
//
// # When a process dies
//
// By default a call runs through: it returns, on every survivor, exactly what it
// would have returned without failures, bit by bit, as long as one is left. With
// [Report] it ends with a [*FailedError] instead. With [Corrected], up to f dead cost
// a Reduce or an Allreduce nothing, and nobody needs to agree on who they are; it
// goes without their inputs.
//
// # How it runs through
//
// The thesis (Stengler 2017, §3.1) separates tasks from processes: "the lost tasks
// are assigned to other processes, which will participate in the communication as
// the failed process". We take that at its word. An algorithm is written for
// tasks, of which there are always as many as there were processes at the start; it
// knows nothing of failures. Beneath it, an [Engine] brings letters from task to
// task, wherever they are now:
//
//   - A task's part in a call is determined by its input and the letters it gets.
//     So a letter is known by its call, step, sender and receiver, and a second
//     one is a copy.
//   - Whoever sends a letter keeps it. When a task moves, all letters to it are
//     sent again, to the new owner.
//   - The new owner does the task's part from the beginning: input from Restore,
//     letters from those who kept them. What it sends again is dropped where it
//     has arrived already.
//
// So only the tasks of the dead are started over; all others do not even notice.
// Without failures no message is sent that a library without fault tolerance would
// not send, but for questions to all when a call takes long.
//
// # What is kept, and how long
//
// Invariants, by the words of the code:
//
//   - A call is finished by a process when the parts of all tasks that it owns are
//     done. It returns to its caller then. Owning more tasks later, it does their
//     parts too, beside its own calls: it is finished again when those are done.
//   - The floor: all calls before it are finished by everybody in one view. What
//     was kept for them is let go. Nobody needs it: whoever has a task, now or
//     after any deaths, needs letters only of calls that somebody of that view had
//     not finished.
//   - The floor is found without messages of its own where a call's result tells
//     that all have begun it: every letter carries how many calls all had finished
//     whose parts it follows from. Otherwise everybody is asked, now and then.
//   - Who gets further ahead of the slowest than [Config.KeepCalls] or
//     [Config.KeepBytes] waits.
//
// Views are agreed on and come in the same order everywhere, so the owner of each
// task is too (owners.go). What a process said of its progress in an earlier view
// counts for nothing in the next, because it may own more tasks there.
//
// # What is not promised
//
//   - A process that dies after it has finished a call has taken its result with
//     it. Whoever owns its task then gets it back by Restore, in the next call.
//   - A Restore that returns something else than the process had given leads to
//     different results in different places.
//
// # Where to read on
//
//   - world.go, call.go, op.go: a call, from its beginning to its end.
//   - receive.go, takeover.go, owners.go, status.go, clerk.go: what comes in, what
//     happens in a new view, and what is told.
//   - broadcast.go, reduce.go, gather.go, …: the algorithms, and algorithm.go: which
//     is taken when; pact.go and correction.go have their own ways.
//   - failures.go, revoke.go, shrink.go: what a program that is told of failures
//     does about them, as in MPI's User-Level Failure Mitigation.
//   - raw.go, draft.go, paper.go: how numbers travel without work per element, and
//     when memory is used again.
package collective
