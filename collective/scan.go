package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Scan combines the elements of each task with those of all before it, in the
// order of tasks. All give as many.
func Scan[T any](ctx context.Context, c Communicator, in []T, op Operator[T], options ...Option) ([]T, error) {
	s := engine.Signature{Kind: engine.Scan, Root: engine.NoRoot, Length: int64(len(in)), Detail: detailOf(typeName[T](), op.Name)}
	j, err := newInvocation[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		sum, err := j.contribution(t)
		if err != nil {
			return err
		}
		// After each step the sum reaches back twice as far (Hillis and Steele 1986).
		for step, d := 0, 1; d < t.N; step, d = step+1, 2*d {
			if t.ID+d < t.N {
				if err := j.sendElements(t, t.ID+d, step, sum); err != nil {
					return err
				}
			}
			if t.ID >= d {
				left, err := j.receiveElements(t, t.ID-d, step, len(sum))
				if err != nil {
					return err
				}
				op.Combine(sum, left.elements, sum)
				left.release()
			}
		}
		j.deliver(t, sum)
		return nil
	})
	return result(j.out, err)
}
