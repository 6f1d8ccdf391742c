package collective

import (
	"context"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Once runs f on one process, that of task 0, and returns when f has returned there. If that
// process dies before all others know, the task's new owner runs f again. So the writes
// of f happen even if the writer dies:
//
//	sum, err := collective.Allreduce(ctx, world, mine, collective.Sum[float64]())
//	…
//	err = collective.Once(ctx, world, func(ctx context.Context) error { return write(sum) })
//
// Any process may have to run f, so f uses only data that every process has, such as the result
// of an Allreduce. f may run again after it has returned, and a process may die while it runs f
// again. So write files under another name and rename them. No process runs f after
// Once has returned there. An error of f ends the call: it is returned by the process that ran
// f, and the others return an [*AbortError].
func Once(ctx context.Context, c Communicator, f func(context.Context) error, options ...Option) error {
	s := engine.Signature{Kind: engine.Once, Root: 0, Length: engine.NoLength}
	var v invocation[byte, []byte, []byte] // without input and result
	if err := v.init(&s, optionsOf(options)); err != nil {
		return err
	}
	var done atomic.Bool // f has returned, as this process knows
	return c.comm().do(ctx, s, func(t *engine.Task) error {
		if t.ID != s.Root {
			p, err := receiveDown(t, s.Root)
			p.Release()
			if err == nil && t.Own() {
				done.Store(true)
			}
			return err
		}
		if !done.Load() {
			if err := f(t.Context()); err != nil {
				return err
			}
			done.Store(true)
		}
		return sendDown(t, s.Root, engine.Payload{})
	})
}
