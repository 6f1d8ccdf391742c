package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Scan returns to each task the combination of its own elements with those of all lower
// tasks, in the order of tasks. All inputs have the same length.
func Scan[T any](ctx context.Context, c Communicator, in []T, op Operator[T], options ...Option) ([]T, error) {
	return scan(ctx, c.comm(), engine.Scan, in, op, options)
}

// Exscan returns to each task the combination of the elements of all lower tasks, without its
// own, in the order of tasks: where its share begins, if the elements are lengths. Task 0 gets
// none. All inputs have the same length.
func Exscan[T any](ctx context.Context, c Communicator, in []T, op Operator[T], options ...Option) ([]T, error) {
	return scan(ctx, c.comm(), engine.Exscan, in, op, options)
}

func scan[T any](ctx context.Context, c Comm, kind engine.Kind, in []T, op Operator[T], options []Option) ([]T, error) {
	s := engine.Signature{
		Kind: kind, Root: engine.NoRoot, Length: int64(len(in)),
		Detail: engine.DetailOf(typeName[T](), op.signatureName()),
	}
	v, err := newInvocation[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	err = c.do(ctx, s, func(t *engine.Task) error {
		sum, err := v.inputCopy(t)
		if err != nil {
			return err
		}
		var before []T // sum without the task's own elements
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
				if kind == engine.Exscan && before == nil {
					before = append(before, left.elements...)
				} else if kind == engine.Exscan {
					err = op.combine(t, before, left.elements, before)
				}
				if err == nil {
					err = op.combine(t, sum, left.elements, sum)
				}
				left.release()
				if err != nil {
					return err
				}
			}
		}
		if err := op.confirm(t); err != nil {
			return err
		}
		if kind == engine.Exscan {
			sum = before
		}
		v.deliver(t, sum)
		return nil
	})
	return result(v.out, err)
}
