package collective

import "context"

// Barrier returns when all have called it. It needs no Restore: the dead are
// stood in for.
func Barrier(ctx context.Context, w Communicator, options ...Option) error {
	s := signature{kind: barrier, root: noRoot, length: noLength}
	if _, err := newInvocation[byte, []byte, []byte](&s, nil, options); err != nil {
		return err
	}
	return w.comm().do(ctx, s, disseminate)
}

// disseminate tells twice as many tasks in each step, until each has heard of all
// others.
func disseminate(t *task) error {
	for step, d := 0, 1; d < t.n; step, d = step+1, 2*d {
		if err := t.send((t.id+d)%t.n, step, nil); err != nil {
			return err
		}
		p, err := t.receivePayload((t.id-d+t.n)%t.n, step)
		if err != nil {
			return err
		}
		p.release()
	}
	return nil
}
