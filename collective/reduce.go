package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Reduce combines all tasks' elements, in the order of tasks, and returns the
// result to the owner of the root's task, nil to others. All give as many.
func Reduce[T any](ctx context.Context, c Communicator, root int, in []T, op Operator[T], options ...Option) ([]T, error) {
	s := engine.Signature{Kind: engine.Reduce, Root: root, Length: int64(len(in)), Detail: detailOf(typeName[T](), op.Name)}
	j, err := newInvocation[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	if err := c.comm().checkRoot(root); err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		if s.Mode == engine.Corrected {
			return correctedReduce(t, j, root, j.dead, op)
		}
		in, err := j.inputElements(t)
		if err != nil {
			return err
		}
		var out []T // at the root
		if t.ID == root {
			out = j.resultBuffer(t, len(in))
		}
		if err := combineTo(t, j, root, in, out, op); err != nil {
			return err
		}
		if t.ID == root {
			j.deliverAtRoot(t, out)
		}
		return nil
	})
	return result(j.out, err)
}

// given is a task's input, which must not be changed.
func (j *invocation[T, In, Out]) inputElements(t *engine.Task) ([]T, error) {
	in, err := j.input(t)
	if err != nil {
		return nil, err
	}
	elements := any(in).([]T)
	if n := t.Signature().Length; n >= 0 && int64(len(elements)) != n {
		return nil, &RestoreError{Task: t.ID, Call: t.Call(), Err: &lengthError{len(elements), int(n)}}
	}
	return elements, nil
}

// contribution is a copy of a task's input, which may be added to.
func (j *invocation[T, In, Out]) contribution(t *engine.Task) ([]T, error) {
	in, err := j.inputElements(t)
	return append(make([]T, 0, len(in)), in...), err
}

// combineTo is a task's part. Neighbors are combined in order, towards task 0; from
// there the result goes to the root.
func combineTo[T, In, Out any](t *engine.Task, j *invocation[T, In, Out], root int, in, out []T, op Operator[T]) error {
	size, algorithm := max(1, len(in)), combineByTree[T, In, Out]
	if j.bytes(len(in)) >= t.Thresholds().Chain {
		size, algorithm = max(1, t.Thresholds().Segment/j.bytes(1)), combineByChain[T, In, Out]
	}
	err := pieces(len(in), size, func(number int, s span) error {
		var result []T // of task 0, which is the root
		if t.ID == 0 && root == 0 {
			result = out[s.from:s.to]
		}
		sum, err := algorithm(t, j, number*stepsOfPiece, in[s.from:s.to], result, op)
		if err == nil && t.ID == 0 && root != 0 {
			err = j.sendBuffer(t, root, (number+1)*stepsOfPiece-1, sum, all(sum.elements))
		}
		sum.release()
		return err
	})
	if err != nil || t.ID != root || root == 0 {
		return err
	}
	// Only now: pieces that are behind must not wait for one that is ahead.
	return pieces(len(in), size, func(number int, s span) error {
		return j.receiveInto(t, 0, (number+1)*stepsOfPiece-1, out[s.from:s.to])
	})
}

// stepsOfPiece is how many steps a piece has at most: one for each bit of a rank.
const stepsOfPiece = 64

// sumPlace is where a sum is written: where the result belongs, or on a draft.
func sumBuffer[T, In, Out any](t *engine.Task, j *invocation[T, In, Out], result []T, n int) typedBuffer[T] {
	if result != nil {
		return typedBuffer[T]{elements: result}
	}
	return j.newBuffer(t, n)
}

// combineByTree combines along a binomial tree whose root is task 0: every task
// stands for those that follow it. It returns the sum at task 0.
func combineByTree[T, In, Out any](t *engine.Task, j *invocation[T, In, Out], step int, in, result []T, op Operator[T]) (typedBuffer[T], error) {
	sum := sumBuffer(t, j, result, len(in))
	for mask := 1; mask < t.N; step, mask = step+1, 2*mask {
		if t.ID&mask != 0 {
			copySum(sum, in)
			return sum, j.sendBuffer(t, t.ID-mask, step, sum, all(in))
		}
		if t.ID+mask < t.N {
			right, err := j.receiveElements(t, t.ID+mask, step, len(in))
			if err != nil {
				return sum, err
			}
			op.Combine(sum.elements, in, right.elements)
			right.release()
			in = sum.elements
		}
	}
	copySum(sum, in)
	return sum, nil
}

// copySum copies what is not there already.
func copySum[T any](sum typedBuffer[T], in []T) {
	if len(in) > 0 && &sum.elements[0] != &in[0] {
		copy(sum.elements, in)
	}
}

// combineByChain combines from the last task to the first, each with the next one's:
// while a piece goes on, the one behind it is combined. Everybody has the same to do,
// and what is sent is written once.
func combineByChain[T, In, Out any](t *engine.Task, j *invocation[T, In, Out], step int, in, result []T, op Operator[T]) (typedBuffer[T], error) {
	sum := sumBuffer(t, j, result, len(in))
	if t.ID == t.N-1 {
		copySum(sum, in)
	} else {
		right, err := j.receiveElements(t, t.ID+1, step, len(in))
		if err != nil {
			return sum, err
		}
		op.Combine(sum.elements, in, right.elements)
		right.release()
	}
	if t.ID == 0 {
		return sum, nil
	}
	return sum, j.sendBuffer(t, t.ID-1, step, sum, all(in))
}
