package collective

import "context"

// Scan combines the elements of each task with those of all before it, in the
// order of tasks. All give as many.
func Scan[T any](ctx context.Context, w Communicator, in []T, op Operator[T], options ...Option) ([]T, error) {
	s := signature{kind: scanning, root: noRoot, length: int64(len(in)), detail: detailOf(typeName[T](), op.Name)}
	j, err := newInvocation[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	err = w.comm().do(ctx, s, func(t *task) error {
		sum, err := j.contribution(t)
		if err != nil {
			return err
		}
		// After each step the sum reaches back twice as far (Hillis and Steele 1986).
		for step, d := 0, 1; d < t.n; step, d = step+1, 2*d {
			if t.id+d < t.n {
				if err := j.sendElements(t, t.id+d, step, sum); err != nil {
					return err
				}
			}
			if t.id >= d {
				left, err := j.receiveElements(t, t.id-d, step, len(sum))
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
