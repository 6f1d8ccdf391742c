package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Reduce combines all tasks' elements, in the order of tasks, and returns the result to the
// owner of the root's task, and nil to others. All inputs have the same length.
func Reduce[T any](ctx context.Context, c Communicator, root int, in []T, op Operator[T],
	options ...Option,
) ([]T, error) {
	s := engine.Signature{
		Kind: engine.Reduce, Root: root, Length: int64(len(in)),
		Detail: engine.DetailOf(typeName[T](), op.signatureName()),
	}
	v, err := newInvocation[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	if err := c.comm().checkRoot(root); err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		if t.Signature().Mode == engine.Corrected {
			return correctedReduce(t, v, root, v.dead, op)
		}
		in, err := v.inputElements(t)
		if err != nil {
			return err
		}
		var out []T // at the root
		if t.ID == root {
			out = v.resultBuffer(t, len(in))
		}
		if err := combineTo(t, v, root, in, out, op); err != nil {
			return err
		}
		if err := op.confirm(t); err != nil {
			return err
		}
		if t.ID == root {
			v.deliverAtRoot(t, out)
		}
		return nil
	})
	return result(v.out, err)
}

// combineTo runs a task's part. Neighbors are combined in order, towards task 0, which sends
// the result to the root.
func combineTo[T, In, Out any](t *engine.Task, v *invocation[T, In, Out], root int, in, out []T, op Operator[T]) error {
	size, algorithm := max(1, len(in)), combineByTree[T, In, Out]
	switch bytes := v.bytes(len(in)); {
	case bytes < t.Thresholds().Levels.Reduce:
		algorithm = combineUpLevels[T, In, Out]
	case bytes >= t.Thresholds().Chain:
		size, algorithm = max(1, t.Thresholds().Segment/v.bytes(1)), combineByChain[T, In, Out]
	}
	err := segments(len(in), size, func(number int, s span) error {
		var result []T // of task 0, which is the root
		if t.ID == 0 && root == 0 {
			result = out[s.from:s.to]
		}
		sum, err := algorithm(t, v, number*stepsOfSegment, in[s.from:s.to], result, op)
		if err == nil && t.ID == 0 && root != 0 {
			err = v.sendBuffer(t, root, (number+1)*stepsOfSegment-1, sum, all(sum.elements))
		}
		sum.release()
		return err
	})
	if err != nil || t.ID != root || root == 0 {
		return err
	}
	// Only now, because later segments must not wait for the result of an earlier one.
	return segments(len(in), size, func(number int, s span) error {
		return v.receiveInto(t, 0, (number+1)*stepsOfSegment-1, out[s.from:s.to])
	})
}

// stepsOfSegment is how many steps a segment has at most: one for each bit of a rank.
const stepsOfSegment = 64

// sumBuffer returns where a sum is written: the result's memory, or a buffer.
func sumBuffer[T, In, Out any](t *engine.Task, v *invocation[T, In, Out], result []T, n int) typedBuffer[T] {
	if result != nil {
		return typedBuffer[T]{elements: result}
	}
	return v.newBuffer(t, n)
}

// combineByTree combines along a binomial tree whose root is task 0: the subtree of a task
// are the tasks that follow it. It returns the sum at task 0.
func combineByTree[T, In, Out any](t *engine.Task, v *invocation[T, In, Out], step int, in, result []T,
	op Operator[T],
) (typedBuffer[T], error) {
	sum := sumBuffer(t, v, result, len(in))
	for mask := 1; mask < t.N; step, mask = step+1, 2*mask {
		if t.ID&mask != 0 {
			copySum(sum, in)
			return sum, v.sendBuffer(t, t.ID-mask, step, sum, all(in))
		}
		if t.ID+mask < t.N {
			right, err := v.receiveElements(t, t.ID+mask, step, len(in))
			if err != nil {
				return sum, err
			}
			err = op.combine(t, sum.elements, in, right.elements)
			right.release()
			if err != nil {
				return sum, err
			}
			in = sum.elements
		}
	}
	copySum(sum, in)
	return sum, nil
}

// copySum copies elements unless they are in place already.
func copySum[T any](sum typedBuffer[T], in []T) {
	if len(in) > 0 && &sum.elements[0] != &in[0] {
		copy(sum.elements, in)
	}
}

// combineByChain combines from the last task to the first, each with the sum of the next
// one. While one segment is on its way, the following one is combined. All tasks have the
// same amount of work, and what is sent is written once.
func combineByChain[T, In, Out any](t *engine.Task, v *invocation[T, In, Out], step int, in, result []T,
	op Operator[T],
) (typedBuffer[T], error) {
	sum := sumBuffer(t, v, result, len(in))
	if t.ID == t.N-1 {
		copySum(sum, in)
	} else {
		right, err := v.receiveElements(t, t.ID+1, step, len(in))
		if err != nil {
			return sum, err
		}
		err = op.combine(t, sum.elements, in, right.elements)
		right.release()
		if err != nil {
			return sum, err
		}
	}
	if t.ID == 0 {
		return sum, nil
	}
	return sum, v.sendBuffer(t, t.ID-1, step, sum, all(in))
}
