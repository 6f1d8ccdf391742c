package collective

import (
	"context"
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Option changes how one call is made. All processes must give a call the same
// ones.
type Option func(*options)

type options struct {
	mode     engine.FailureMode
	dead     int // how many a corrected call is made for
	restore  any // func(context.Context, int) (In, error)
	takeover any // func(int, Out)
	codec    any // Codec[T]
	into     any // Out
}

// Report makes a call end with a [*FailedError] when a member has failed, before
// or during it, so that the caller decides. Nothing is kept for takeovers then.
// Without it calls run through: the tasks of the dead are taken over.
func Report() Option {
	return func(o *options) { o.mode = engine.Report }
}

// Restore says how the input of a task whose process has died is brought back:
// it must return exactly what that process has given, or would have given, to
// this very call. It is called by whoever owns the task now, at most once there,
// by another goroutine, and possibly after the call has returned: others may
// still wait for that task's part. A call without it fails if such an input is
// needed.
//
// In is what the call takes, as []float64 or, for parts, [][]float64.
func Restore[In any](f func(ctx context.Context, task int) (In, error)) Option {
	return func(o *options) { o.restore = f }
}

// Takeover is told the results of tasks whose processes have died before they had
// finished the call, by whoever owns them now: by another goroutine, and possibly
// after the call has returned. The result must not be changed.
//
// Out is what the call returns.
func Takeover[Out any](f func(task int, result Out)) Option {
	return func(o *options) { o.takeover = f }
}

// Into says where the result goes, so that a call that is made again and again need
// not make new memory each time: what the call returns lies there if there is room
// for it, as append would have it, and it is no error if there is not. Until the
// call returns it is the call's, and it must not overlap what the call is given.
// Results that the caller gets of others' tasks lie elsewhere. Broadcast, Reduce,
// Allreduce and Alltoall make use of it.
//
// Out is what the call returns.
func Into[Out any](out Out) Option {
	return func(o *options) { o.into = out }
}

// WithCodec says how elements that are not numbers are turned into bytes.
func WithCodec[T any](c Codec[T]) Option {
	return func(o *options) { o.codec = c }
}

func optionsOf(list []Option) (o options) {
	for _, option := range list {
		option(&o)
	}
	return o
}

// wrongType says that an option is for another type than the call.
func wrongType[Want any](name string, got any) error {
	var want Want
	return fmt.Errorf("collective: %s is %T, this call needs %T", name, got, want)
}
