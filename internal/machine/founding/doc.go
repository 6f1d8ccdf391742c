// Package founding lets processes that are all started by the same command begin one
// group together. A process that finds a running group joins it instead.
//
// The candidates elect a founder, the one with the lowest ID, by promises. A candidate
// asks its seeds, and learns from them of other candidates. It promises itself to the
// candidate with the lowest ID that it has heard from, if that is not itself. When
// enough candidates have promised themselves to one, that one is the founder: it begins
// the group with them as the first view, and tells them when they ask again. A promise
// counts only if its sender has also answered at the address that it names: so a process
// cannot promise others, which would be members that nobody reaches.
//
// # Why there is one group
//
// A candidate is promised to one founder at a time, and a founder begins only with
// candidates that are promised to it. A promise ends in two ways only:
//
//   - The founder says so. It does when it promises itself to another candidate, and
//     from then on it no longer counts the promise. A promise names the term of the
//     founder, which grows then, so that a late promise does not count either.
//   - The founder is gone: another process answers at its address, or its host says
//     that no process listens there.
//
// A founder that does not answer may have begun, so its followers wait for it. They
// wait anyway if all expected processes are needed. So two sets that begin have no
// process in common, and if fewer than twice the expected processes exist, only one
// set begins. A process that is started again has forgotten its promise. That does no
// harm if the expected processes are all that exist: each set then needs a process of
// every ID, so one that begins later consists of processes that are not in the group
// that began earlier.
//
// # Driving a Machine
//
// In: [Machine.Handle] for a request of another candidate, [Machine.HandleReply] and
// [Machine.HandleFailure] for the result of an own request, [Machine.Lost]. Out, after
// each of these and at [Machine.Deadline]: [Machine.Next] until it returns no request,
// then [Machine.Outcome]. A machine is not safe for concurrent use. It does no I/O.
package founding
