package collective

import (
	"context"
	"reflect"
)

// Reduce combines all tasks' elements, in the order of tasks, and returns the
// result to the owner of the root's task, nil to others. All give as many.
func Reduce[T any](ctx context.Context, w World, root int, in []T, op Operator[T], options ...Option) ([]T, error) {
	s := signature{kind: reducing, root: root, length: int64(len(in)), detail: detailOf(typeName[T](), op.Name)}
	j, err := newJob[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	if err := w.place().checkRoot(root); err != nil {
		return nil, err
	}
	err = w.place().do(ctx, s, func(t *task) error {
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

// reduceTo combines piece by piece: while one goes up, the next is combined. The
// root's sum is then the result.
func reduceTo[T, In, Out any](t *task, j *job[T, In, Out], root int, sum []T, op Operator[T]) error {
	size := pieceOf[T](len(sum))
	for piece, at := 0, 0; at == 0 || at < len(sum); piece, at = piece+1, at+size {
		if err := reducePiece(t, j, root, piece*stepsOfPiece, sum[at:min(at+size, len(sum))], op); err != nil {
			return err
		}
	}
	return nil
}

// stepsOfPiece is how many steps a piece has at most: one for each bit of a rank.
const stepsOfPiece = 64

// pieceOf is how many elements are passed on as a whole.
func pieceOf[T any](length int) int {
	if elementOf[T]() == 0 {
		return max(1, length) // nobody knows how long they will be
	}
	return pipeline / int(reflect.TypeFor[T]().Size())
}

// reducePiece combines along a binomial tree whose root is task 0, so that every
// task stands for those that follow it, and neighbors are combined in order. From
// there it goes to the root.
func reducePiece[T, In, Out any](t *task, j *job[T, In, Out], root, step int, sum []T, op Operator[T]) error {
	last := step + stepsOfPiece - 1
	for mask := 1; mask < t.n; step, mask = step+1, 2*mask {
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
