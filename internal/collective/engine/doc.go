// Package engine runs the collective calls of one process: it numbers calls, carries
// messages between tasks, logs them, lets survivors take over the tasks of failed
// processes, and agrees on values. Package collective is its public face and holds
// the algorithms; package pleach connects an engine to a network.
//
// # How a call survives failures
//
// Stengler (2017, §3.1) separates tasks from processes: "the lost tasks are assigned
// to other processes, which will participate in the communication as the failed
// process". An algorithm is written for tasks. There are always as many tasks as
// there were processes at the start, and an algorithm knows nothing of failures.
// Beneath it, the engine uses sender-based message logging with replay (Johnson and
// Zwaenepoel 1987), for send-deterministic tasks (Guermouche et al. 2011):
//
//   - A task's part in a call is determined by its input and the messages that it
//     receives. A message is identified by its call, step, sender and receiver. A
//     second message with the same identity is a duplicate.
//   - The sender logs each message. When a task moves, every sender replays its
//     logged messages to the task's new owner.
//   - The new owner runs the task's part from the beginning, with the input that the
//     caller's Restore returns and the replayed messages. Receivers drop the
//     duplicates that it sends.
//
// Only the tasks of failed processes start over. Without failures no message is sent
// that a library without fault tolerance would not send, except progress requests
// when a call takes long.
//
// # When the log is trimmed
//
//   - A process has finished a call when the parts of all tasks that it owns are
//     done. The call returns then. If the process takes over tasks later, it runs
//     their parts in the background, and has finished again when those are done.
//   - The low-water mark is the number of a call: in one view, every process has
//     finished all calls before it. Their logs are trimmed, because a task that moves
//     needs messages only of calls that a process of that view had not finished.
//   - Each message piggybacks the minimum finished-call count over the processes it
//     causally depends on, so a call whose result depends on all processes (Barrier,
//     Allreduce and others) raises the low-water mark for free. After other calls the
//     engine asks every process for its progress.
//   - A call blocks while its process is [Config.KeepCalls] calls or
//     [Config.KeepBytes] logged bytes ahead of the slowest process.
//   - A process that holds ([Comm.Hold]) does not count the calls since then as finished,
//     so that their logs stay. A call that would block for that reason fails.
//
// Views are agreed on and arrive in the same order everywhere, so every process
// computes the same owner for each task. A progress report counts only in the view
// in which it was made, because its sender may own more tasks in the next one.
//
// # Where to read on
//
//   - engine.go, comm.go, call.go, callstate.go, task.go: a call from beginning to end.
//   - frame.go, receive.go, sender.go: messages on the wire, in and out.
//   - log.go, hold.go, mailbox.go, takeover.go, query.go, peers.go, owners.go: logging,
//     replay and views.
//   - agreement.go, shrink.go, registry.go, revoke.go: what a program does after a
//     failure that it wants to handle itself.
//   - admit.go, generation.go: how processes that replace failed ones are taken in.
//   - buffer.go, log.go, callstate.go: when memory is reused.
package engine
