package collective

import (
	"context"
	"time"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Option changes how one call works. All processes must pass the same options.
type Option func(*options)

type options struct {
	mode     engine.FailureMode
	dead     int // deaths that a corrected call tolerates
	restore  any // func(context.Context, int) (In, error)
	takeover any // func(int, Out)
	codec    any // Codec[T]
	into     any // Out
	mutual   bool
	within   time.Duration
}

// Report makes a call end with a [*FailedError] when a member has failed, before or
// during it. Messages are not logged for takeovers then. Without Report calls run through:
// survivors take over the tasks of failed processes.
func Report() Option {
	return func(o *options) { o.mode = engine.Report }
}

// Corrected makes a Reduce or an Allreduce tolerate up to f deaths, before or during it,
// without a view, a takeover or a [Restore]. The result has the inputs of all live
// processes; each dead process's input is in it or not. The root must live; that of an
// Allreduce is task 0. The operator must be commutative, unless the root is 0.
//
// No agreement on the dead is needed. A process that waits for another one's message continues
// without it when the connection is lost. A process that is unresponsive, because it is stopped
// or cut off, is asked: if it does not answer within a few times what answers take, 16 ms at
// least and half a second at most, it is left out, and later calls do not wait for it until it
// makes calls again. A process that answers and does not come is left out after 2 s. So a
// silent process costs one call some 25 ms on an ordinary host. A wrong guess costs an input:
// all processes still return the same result.
//
// If more than f processes are dead or silent, the call may return a [*TooManyDeadError]
// after some seconds. A process that stays silent but is not removed from the view holds up
// the others when they are 256 calls ahead (pleach.Job.LogCalls).
func Corrected(f int) Option {
	return func(o *options) { o.mode, o.dead = engine.Corrected, f }
}

// Within gives an [Agree] or a [Comm.Shrink] a deadline: a process that has not come to the call
// that long after most of the others is removed from the job by an agreed view, as if it had
// failed, and its own calls return an error that says so. Processes may pass different
// deadlines; the shortest counts. It is pleach.Job.ProgressTimeout for one call, and like it
// removes nobody where most have not come, and in a job of two.
func Within(d time.Duration) Option {
	return func(o *options) { o.within = d }
}

// Restore sets the function that returns the input of a failed process's task. It must
// return exactly what that process has passed, or would have passed, to this very call.
//
// The task's new owner calls f from another goroutine, and possibly after the call has
// returned there, because other processes may still wait for the task's part. f is called
// once for a task, and again only after an error. When a process dies, f is called for each
// call that any process has not completed: that in progress and, where all calls are of the
// kinds whose result depends on all processes (Barrier, Allreduce, Allgather, ReduceScatter,
// Alltoall), the one or two before. Other kinds let processes run ahead: then it may be any
// of the last 256 calls. [Comm.Hold] adds all calls that are held. So f must not read data that the
// program changes after the call, such as weights that are updated in place: it needs a copy of
// those that the call began with.
//
// If a task that was taken over sends another message than it had sent before, every call
// on all processes ends with a [*DivergedError]. A call without Restore fails with a
// [*RestoreError] if it needs such an input.
//
// In is the type of the call's input: []T, [][]T for parts, or map[int][]T for those of Exchange.
func Restore[In any](f func(ctx context.Context, task int) (In, error)) Option {
	return func(o *options) { o.restore = f }
}

// Takeover sets the function that receives the results of tasks whose processes have
// failed before they completed the call, or, if the call is held ([Comm.Hold]), at any time. The
// task's new owner calls it, from another goroutine, possibly after the call has returned
// there. It must not modify the result.
//
// Out is the type of the call's result.
//
// An Allreduce with Takeover is not made in parts (see [Allreduce]).
func Takeover[Out any](f func(task int, result Out)) Option {
	return func(o *options) { o.takeover = f }
}

// Into sets memory for the result, so that a repeated call need not allocate. The call
// uses the memory if its capacity suffices, and allocates otherwise. The memory belongs to
// the call until it returns, and must not overlap the call's input. Results of taken-over
// tasks do not use it. Broadcast, Reduce, Allreduce, Alltoall and Exchange support Into; the other
// collectives ignore it.
//
// Out is the type of the call's result.
func Into[Out any](out Out) Option {
	var into any = out // here, so that a call with an option that was made before allocates less
	return func(o *options) { o.into = into }
}

// WithCodec sets the codec of elements that are not numbers. Without it, the call uses
// encoding/gob.
func WithCodec[T any](c Codec[T]) Option {
	return func(o *options) { o.codec = c }
}

// take takes in the options of a call.
func (o *options) take(list []Option) {
	for _, option := range list {
		option(o)
	}
}

// optionsOf returns the options of a call that has no invocation to keep them in.
func optionsOf(list []Option) *options {
	if len(list) == 0 {
		return &noOptions
	}
	var o options
	o.take(list)
	return &o
}

var noOptions options

// wrongType is the error of an option whose type does not fit the call.
func wrongType[Want any](name string, got any) error {
	var want Want
	return wrongArgument("%s is %T, this call needs %T", name, got, want)
}
