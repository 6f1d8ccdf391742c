// Package collective has operations that all processes of a job take part in, and that
// complete with the right result even when processes die.
//
//	sum, err := collective.Allreduce(ctx, world, mine, collective.Sum[float64](),
//		collective.Restore(func(ctx context.Context, task int) ([]float64, error) {
//			return load(task) // the input of that task
//		}))
//
// The communicator comes from pleach.NewWorld. Every process makes the same calls in the
// same order. Calls that do not match end with a [*MismatchError] on all processes. A
// call whose context ends returns a [*TimeoutError] that names the processes it waited
// for, and ends with an [*AbortError] on the others that have not completed it. [Comm.Reserve]
// lets calls run concurrently.
//
// # Tasks
//
// A communicator has as many tasks as it had processes at the start. Task i is first
// owned by rank i. When that process dies, a survivor owns the task: it runs the task's
// part in every call, with the input that [Restore] returns. Inputs, results and roots
// are those of tasks.
//
// # When a process dies
//
//   - By default a call runs through: every survivor gets exactly the result that it
//     would have got without failures, bit by bit. On one host that holds down to the last
//     survivor, on several hosts as long as the survivors have a quorum (see pleach.World).
//   - With [Report] the call ends with a [*FailedError]. The program decides, as with
//     MPI's User-Level Failure Mitigation (ULFM): [Comm.Revoke], [Agree], [Comm.Shrink].
//   - With [Corrected], up to f deaths cost a Reduce or an Allreduce nothing, and a silent
//     process costs one call some milliseconds. The result lacks inputs of the dead.
//
// # What is not promised
//
//   - The result of a process that dies after it has completed a call is lost, unless
//     it holds ([Comm.Hold]). The task's new owner gets the task's next input from Restore.
//   - A Restore that returns something else than the process had passed leads to
//     different results on different processes. Most such errors are found by comparing
//     messages, and end the job with a [*DivergedError]. Messages that need a Codec are
//     not compared, and of long messages 4 KiB are, unless the call is held.
package collective
