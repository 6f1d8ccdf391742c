package collective

import "context"

// Reduce combines all tasks' elements, in the order of tasks, and returns the
// result to the owner of the root's task, nil to others. All give as many.
func Reduce[T any](ctx context.Context, w World, root int, in []T, op Operator[T], options ...Option) ([]T, error) {
	s := signature{kind: reducing, root: root, length: int64(len(in)), detail: detailOf(typeName[T](), op.Name)}
	j, err := newJob[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	if err := w.engine().checkRoot(root); err != nil {
		return nil, err
	}
	err = w.engine().do(ctx, s, func(t *task) error {
		if s.strength == corrected {
			return correctedReduce(t, j, root, j.dead, op)
		}
		sum, err := j.contribution(t)
		if err != nil {
			return err
		}
		if err := reduceTo(t, j, root, sum, op); err != nil {
			return err
		}
		if t.id == root {
			j.deliverAtRoot(t, sum)
		}
		return nil
	})
	return result(j.out, err)
}

// contribution is a copy of a task's input, which may be added to.
func (j *job[T, In, Out]) contribution(t *task) ([]T, error) {
	in, err := j.input(t)
	if err != nil {
		return nil, err
	}
	elements := any(in).([]T)
	if n := t.op.call.signature.length; n >= 0 && int64(len(elements)) != n {
		return nil, &RestoreError{Task: t.id, Call: t.op.number, Err: &lengthError{len(elements), int(n)}}
	}
	return append(make([]T, 0, len(elements)), elements...), nil
}

// reduceTo combines along a binomial tree whose root is task 0, so that every
// task stands for those that follow it, and neighbors are combined in order. From
// there it goes to the root. The root's sum is then the result.
func reduceTo[T, In, Out any](t *task, j *job[T, In, Out], root int, sum []T, op Operator[T]) error {
	step, mask := 0, 1
	for ; mask < t.n; step, mask = step+1, 2*mask {
		if t.id&mask != 0 {
			if err := sendElements(t, j, t.id-mask, step, sum); err != nil {
				return err
			}
			break
		}
		if t.id+mask < t.n {
			right, err := receiveElements(t, j, t.id+mask, step, len(sum))
			if err != nil {
				return err
			}
			op.Combine(sum, sum, right)
		}
	}
	const last = 1 << 20 // after all steps
	switch {
	case root == 0:
		return nil
	case t.id == 0:
		return sendElements(t, j, root, last, sum)
	case t.id == root:
		all, err := receiveElements(t, j, 0, last, len(sum))
		copy(sum, all)
		return err
	}
	return nil
}

// sendElements sends elements, in bytes of their own.
func sendElements[T, In, Out any](t *task, j *job[T, In, Out], to, step int, elements []T) error {
	b, err := j.encode(elements)
	if err != nil {
		return err
	}
	return t.send(to, step, b)
}

// receiveElements receives so many elements.
func receiveElements[T, In, Out any](t *task, j *job[T, In, Out], from, step, n int) ([]T, error) {
	b, err := t.receive(from, step)
	if err != nil {
		return nil, err
	}
	return j.like(b, n)
}

// Allreduce combines all tasks' elements, in the order of tasks, and returns the
// result everywhere. All give as many.
func Allreduce[T any](ctx context.Context, w World, in []T, op Operator[T], options ...Option) ([]T, error) {
	s := signature{kind: allreducing, root: noRoot, length: int64(len(in)), detail: detailOf(typeName[T](), op.Name)}
	j, err := newJob[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	err = w.engine().do(ctx, s, func(t *task) error {
		if s.strength == corrected {
			return correctedAllreduce(t, j, j.dead, op)
		}
		sum, err := j.contribution(t)
		if err != nil {
			return err
		}
		if sum, err = doubling(t, j, sum, op); err != nil {
			return err
		}
		j.deliver(t, sum)
		return nil
	})
	return result(j.out, err)
}

// doubling combines with a partner at twice the distance in each step (recursive
// doubling). Where tasks are no power of two, the first ones go in pairs: the
// even one stands for both.
func doubling[T, In, Out any](t *task, j *job[T, In, Out], sum []T, op Operator[T]) ([]T, error) {
	f := foldOf(t.n)
	if partner, absent := f.absent(t.id); absent {
		if err := sendElements(t, j, partner, 0, sum); err != nil {
			return nil, err
		}
		return receiveElements(t, j, partner, 1, len(sum))
	}
	if partner, ok := f.partner(t.id); ok {
		right, err := receiveElements(t, j, partner, 0, len(sum))
		if err != nil {
			return nil, err
		}
		op.Combine(sum, sum, right)
	}
	me := f.index(t.id)
	for step, mask := 2, 1; mask < f.power; step, mask = step+1, 2*mask {
		other := f.task(me ^ mask)
		if err := sendElements(t, j, other, step, sum); err != nil {
			return nil, err
		}
		theirs, err := receiveElements(t, j, other, step, len(sum))
		if err != nil {
			return nil, err
		}
		if me&mask == 0 {
			op.Combine(sum, sum, theirs)
		} else {
			op.Combine(sum, theirs, sum)
		}
	}
	if partner, ok := f.partner(t.id); ok {
		return sum, sendElements(t, j, partner, 1, sum)
	}
	return sum, nil
}
