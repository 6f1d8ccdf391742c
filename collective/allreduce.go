package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Allreduce combines all tasks' elements, in the order of tasks, and returns the
// result everywhere. All give as many.
func Allreduce[T any](ctx context.Context, c Communicator, in []T, op Operator[T], options ...Option) ([]T, error) {
	s := engine.Signature{Kind: engine.Allreduce, Root: engine.NoRoot, Length: int64(len(in)), Detail: detailOf(typeName[T](), op.Name)}
	j, err := newInvocation[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		if s.Mode == engine.Corrected {
			return correctedAllreduce(t, j, j.dead, op)
		}
		in, err := j.inputElements(t)
		if err != nil {
			return err
		}
		out := j.resultBuffer(t, len(in))
		if err := combineEverywhere(t, j, in, out, op); err != nil {
			return err
		}
		j.deliver(t, out)
		return nil
	})
	return result(j.out, err)
}

// combineEverywhere is a task's part.
func combineEverywhere[T, In, Out any](t *engine.Task, j *invocation[T, In, Out], in, out []T, op Operator[T]) error {
	f := foldOf(t.N)
	if partner, absent := f.absent(t.ID); absent {
		if err := j.sendElements(t, partner, 0, in); err != nil {
			return err
		}
		return j.receiveInto(t, partner, 1, out)
	}
	partner, pair := f.partner(t.ID)
	if pair {
		right, err := j.receiveElements(t, partner, 0, len(in))
		if err != nil {
			return err
		}
		op.Combine(out, in, right.elements)
		right.release()
		in = out
	}
	algorithm := doubling[T, In, Out]
	if j.bytes(len(in)) >= t.Thresholds().Halving {
		algorithm = halving[T, In, Out]
	}
	if err := algorithm(t, j, f, in, out, op); err != nil {
		return err
	}
	if pair {
		return j.sendElements(t, partner, 1, out)
	}
	return nil
}

// combineInOrder combines with what has come from the task at another index: what
// comes from lower tasks is on the left.
func combineInOrder[T any](op Operator[T], into, mine, theirs []T, lower bool) {
	if lower {
		op.Combine(into, mine, theirs)
	} else {
		op.Combine(into, theirs, mine)
	}
}

// doubling combines everything with a partner at twice the distance in each step
// (recursive doubling): the fewest steps.
func doubling[T, In, Out any](t *engine.Task, j *invocation[T, In, Out], f fold, in, out []T, op Operator[T]) error {
	me := f.index(t.ID)
	copy(out, in)
	for step, mask := 2, 1; mask < f.power; step, mask = step+1, 2*mask {
		other := f.task(me ^ mask)
		if err := j.sendElements(t, other, step, out); err != nil {
			return err
		}
		theirs, err := j.receiveElements(t, other, step, len(out))
		if err != nil {
			return err
		}
		combineInOrder(op, out, out, theirs.elements, me&mask == 0)
		theirs.release()
	}
	return nil
}

// halving combines half of what is left in each step, so that each task ends up
// with a share of the result, and then collects the shares the same ways back
// (Rabenseifner 2004): twice the steps, but each element travels only twice.
func halving[T, In, Out any](t *engine.Task, j *invocation[T, In, Out], f fold, in, out []T, op Operator[T]) error {
	me := f.index(t.ID)
	sum := j.newBuffer(t, len(in)) // every element of it is sent once at most
	defer sum.release()
	var given []span
	step, mine := 2, all(in)
	for mask := 1; mask < f.power; step, mask = step+1, 2*mask {
		keep, give := mine.halves()
		if me&mask != 0 {
			keep, give = give, keep
		}
		if mask == 1 {
			copy(sum.elements[give.from:give.to], in[give.from:give.to])
		}
		other := f.task(me ^ mask)
		if err := j.sendBuffer(t, other, step, sum, give); err != nil {
			return err
		}
		theirs, err := j.receiveElements(t, other, step, keep.to-keep.from)
		if err != nil {
			return err
		}
		combineInOrder(op, sum.elements[keep.from:keep.to], in[keep.from:keep.to], theirs.elements, me&mask == 0)
		theirs.release()
		in, mine, given = sum.elements, keep, append(given, give)
	}
	copy(out[mine.from:mine.to], in[mine.from:mine.to])
	return collectShares(t, j, f, sum, mine, given, step, out)
}

// collectShares is the way back: each step doubles what a task has of the result.
func collectShares[T, In, Out any](t *engine.Task, j *invocation[T, In, Out], f fold, sum typedBuffer[T], mine span, given []span, step int, out []T) error {
	me := f.index(t.ID)
	for i := len(given) - 1; i >= 0; i, step = i-1, step+1 {
		other, lacking := f.task(me^1<<i), given[i]
		var err error
		if i == len(given)-1 {
			err = j.sendBuffer(t, other, step, sum, mine)
		} else {
			err = j.sendElements(t, other, step, out[mine.from:mine.to])
		}
		if err != nil {
			return err
		}
		if err := j.receiveInto(t, other, step, out[lacking.from:lacking.to]); err != nil {
			return err
		}
		mine = span{min(mine.from, lacking.from), max(mine.to, lacking.to)}
	}
	return nil
}
