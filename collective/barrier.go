package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Barrier returns when all have called it. It needs no Restore: the dead are
// stood in for.
func Barrier(ctx context.Context, c Communicator, options ...Option) error {
	s := engine.Signature{Kind: engine.Barrier, Root: engine.NoRoot, Length: engine.NoLength}
	if _, err := newInvocation[byte, []byte, []byte](&s, nil, options); err != nil {
		return err
	}
	return c.comm().do(ctx, s, disseminate)
}

// disseminate tells twice as many tasks in each step, until each has heard of all
// others.
func disseminate(t *engine.Task) error {
	for step, d := 0, 1; d < t.N; step, d = step+1, 2*d {
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
