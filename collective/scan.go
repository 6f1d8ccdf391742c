package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Scan returns to each task the combination of its own elements with those of all lower
// tasks, in the order of tasks. All inputs have the same length.
func Scan[T any](ctx context.Context, c Communicator, in []T, op Operator[T], options ...Option) ([]T, error) {
	s := engine.Signature{Kind: engine.Scan, Root: engine.NoRoot, Length: int64(len(in)), Detail: engine.DetailOf(typeName[T](), op.Name)}
	v, err := newInvocation[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		sum, err := v.inputCopy(t)
		if err != nil {
			return err
		}
		// Each step doubles how far back the sum reaches (Hillis and Steele 1986).
		for step, d := 0, 1; d < t.N; step, d = step+1, 2*d {
			if t.ID+d < t.N {
				if err := v.sendElements(t, t.ID+d, step, sum); err != nil {
					return err
				}
			}
			if t.ID >= d {
				left, err := v.receiveElements(t, t.ID-d, step, len(sum))
				if err != nil {
					return err
				}
				op.Combine(sum, left.elements, sum)
				left.release()
			}
		}
		v.deliver(t, sum)
		return nil
	})
	return result(v.out, err)
}
