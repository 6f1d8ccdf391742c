package collective

import (
	"context"
	"reflect"
)

// Allreduce combines all tasks' elements, in the order of tasks, and returns the
// result everywhere. All give as many.
func Allreduce[T any](ctx context.Context, w World, in []T, op Operator[T], options ...Option) ([]T, error) {
	s := signature{kind: allreducing, root: noRoot, length: int64(len(in)), detail: detailOf(typeName[T](), op.Name)}
	j, err := newJob[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	err = w.place().do(ctx, s, func(t *task) error {
		if s.strength == corrected {
			return correctedAllreduce(t, j, j.dead, op)
		}
		sum, err := j.contribution(t)
		if err != nil {
			return err
		}
		f := foldOf(t.n)
		if partner, absent := f.absent(t.id); absent {
			if sum, err = stoodInFor(t, j, partner, sum); err == nil {
				j.deliver(t, sum)
			}
			return err
		}
		if err := standIn(t, j, f, sum, op); err != nil {
			return err
		}
		j.deliver(t, sum)
		return nil
	})
	return result(j.out, err)
}

// stoodInFor is the part of a task for which another one stands.
func stoodInFor[T, In, Out any](t *task, j *job[T, In, Out], partner int, sum []T) ([]T, error) {
	if err := sendElements(t, j, partner, 0, sum); err != nil {
		return nil, err
	}
	return receiveElements(t, j, partner, 1, len(sum))
}

// standIn is the part of all others.
func standIn[T, In, Out any](t *task, j *job[T, In, Out], f fold, sum []T, op Operator[T]) error {
	partner, pair := f.partner(t.id)
	if pair {
		right, err := receiveElements(t, j, partner, 0, len(sum))
		if err != nil {
			return err
		}
		op.Combine(sum, sum, right)
	}
	algorithm := doubling[T, In, Out]
	if bytes := len(sum) * int(reflect.TypeFor[T]().Size()); elementOf[T]() != 0 && bytes >= halvingFrom {
		algorithm = halving[T, In, Out]
	}
	if err := algorithm(t, j, f, sum, op); err != nil {
		return err
	}
	if pair {
		return sendElements(t, j, partner, 1, sum)
	}
	return nil
}

// meet exchanges elements with the task at another index, and combines: what
// comes from lower tasks is on the left.
func meet[T, In, Out any](t *task, j *job[T, In, Out], f fold, mask, step int, give, keep []T, op Operator[T]) error {
	me := f.index(t.id)
	other := f.task(me ^ mask)
	if err := sendElements(t, j, other, step, give); err != nil {
		return err
	}
	theirs, err := receiveElements(t, j, other, step, len(keep))
	if err != nil {
		return err
	}
	if me&mask == 0 {
		op.Combine(keep, keep, theirs)
	} else {
		op.Combine(keep, theirs, keep)
	}
	return nil
}

// doubling combines everything with a partner at twice the distance in each step
// (recursive doubling): the fewest steps.
func doubling[T, In, Out any](t *task, j *job[T, In, Out], f fold, sum []T, op Operator[T]) error {
	for step, mask := 2, 1; mask < f.power; step, mask = step+1, 2*mask {
		if err := meet(t, j, f, mask, step, sum, sum, op); err != nil {
			return err
		}
	}
	return nil
}

// halving combines half of what is left in each step, so that each task ends up
// with a share of the result, and then collects the shares the same ways back
// (Rabenseifner 2004): twice the steps, but each element travels only twice.
func halving[T, In, Out any](t *task, j *job[T, In, Out], f fold, sum []T, op Operator[T]) error {
	me := f.index(t.id)
	var shares [][2][]T // this task's and its partner's, in each step
	step, mine := 2, sum
	for mask := 1; mask < f.power; step, mask = step+1, 2*mask {
		low, high := mine[:len(mine)/2], mine[len(mine)/2:]
		if me&mask != 0 {
			low, high = high, low
		}
		if err := meet(t, j, f, mask, step, high, low, op); err != nil {
			return err
		}
		shares = append(shares, [2][]T{low, high})
		mine = low
	}
	for i := len(shares) - 1; i >= 0; i, step = i-1, step+1 {
		other := f.task(me ^ 1<<i)
		if err := sendElements(t, j, other, step, shares[i][0]); err != nil {
			return err
		}
		theirs, err := receiveElements(t, j, other, step, len(shares[i][1]))
		if err != nil {
			return err
		}
		copy(shares[i][1], theirs)
	}
	return nil
}
