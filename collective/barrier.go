package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Barrier returns when all processes have called it. It needs no [Restore].
func Barrier(ctx context.Context, c Communicator, options ...Option) error {
	s := engine.Signature{Kind: engine.Barrier, Root: engine.NoRoot, Length: engine.NoLength}
	var v invocation[byte, []byte, []byte] // without input and result
	if err := v.init(&s, optionsOf(options)); err != nil {
		return err
	}
	return c.comm().do(ctx, s, meet)
}

// meet returns when all tasks have come to it.
func meet(t *engine.Task) error {
	if t.Thresholds().Levels.Barrier {
		return meetByLevels(t)
	}
	return disseminateFrom(t, 0)
}

// disseminateFrom is the dissemination barrier (Hensgen, Finkel and Manber 1988): in each step
// a task learns of twice as many others. Its messages have the steps from first on.
func disseminateFrom(t *engine.Task, first int) error {
	for step, d := first, 1; d < t.N; step, d = step+1, 2*d {
		if err := t.Send((t.ID+d)%t.N, step, nil); err != nil {
			return err
		}
		p, err := t.ReceivePayload((t.ID-d+t.N)%t.N, step)
		if err != nil {
			return err
		}
		p.Release()
	}
	return nil
}
