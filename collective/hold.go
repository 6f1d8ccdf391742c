package collective

// Hold makes what a process has received survive it. It keeps the log of all calls from the
// next one on, on all processes, until this process calls release or dies. Without Hold, a
// process that dies after it has completed a call loses its result.
//
//	defer world.Hold()()
//	mine, err := collective.Alltoall(ctx, world, parts, restoreParts, collective.Takeover(received))
//	sorted := work(mine) // if the process dies here, received gets its parts elsewhere
//	total, err := collective.Allreduce(ctx, world, count(sorted), op, restoreCount)
//
// If a process dies, the new owners of its tasks run their parts in all held calls again:
// they call [Restore] for the inputs and [Takeover] with the results, also of calls that the
// process had completed. These calls run concurrently, so the Restore of one may wait for the
// Takeover of an earlier one, as long as its context lasts: the input of the second call is
// what the program makes of the result of the first.
//
// A hold protects the results of its own process's tasks, and ends with its process. The new
// owner of the tasks has to hold, too, for them to survive it. So all processes hold and
// release at the same places in the order of calls. release may be called by any goroutine,
// and more than once. It releases all calls of the hold together, once the parts of tasks that
// were taken over are done in all of them.
//
// The log, the inputs and the Restore functions of all held calls stay in memory. A call that
// begins beyond the limits of the log (pleach.Job.LogCalls and LogBytes) ends with a
// [*HoldError]. After release, the next calls whose result depends on all processes trim the
// log. Calls with [Report] or [Corrected] are not held.
//
// A task that is run again has to send what it has sent before. In held calls every message
// of numbers is compared as a whole, not by samples, and one that differs ends all calls with
// a [*DivergedError]. So work between calls has to be deterministic: floating-point sums in
// an order that does not depend on timing, no iteration over maps.
func (c Comm) Hold() (release func()) { return core(c).Hold() }

// HoldLimits returns how many calls the log of this process may hold, and how many bytes
// that were sent in them: pleach.Job.LogCalls and LogBytes.
func (c Comm) HoldLimits() (calls, bytes int) { return core(c).LogLimits() }
