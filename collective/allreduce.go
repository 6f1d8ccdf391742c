package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Allreduce combines all tasks' elements, in the order of tasks, and returns the result
// to all. All inputs have the same length.
//
// More than 4 MiB of numbers are combined in parts, so that a process needs little memory
// in addition to its input and the result. Each part counts as a call. Calls made through [Comm.Reserve]
// and those with [Takeover] are not made in parts, and keep about twice the input in the log.
func Allreduce[T any](ctx context.Context, c Communicator, in []T, op Operator[T], options ...Option) ([]T, error) {
	s := engine.Signature{
		Kind: engine.Allreduce, Root: engine.NoRoot, Length: int64(len(in)),
		Detail: engine.DetailOf(typeName[T](), op.signatureName()),
	}
	v, err := newInvocation[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	if part := v.partOfAllreduce(c.comm(), &s); part < len(in) {
		return allreduceInParts(ctx, c.comm(), v, s, part, op)
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		if t.Signature().Mode == engine.Corrected {
			return correctedAllreduce(t, v, v.dead, op)
		}
		in, err := v.inputElements(t)
		if err != nil {
			return err
		}
		out := v.resultBuffer(t, len(in))
		if err := combineEverywhere(t, v, in, out, op); err != nil {
			return err
		}
		if err := op.confirm(t); err != nil {
			return err
		}
		v.deliver(t, out)
		return nil
	})
	return result(v.out, err)
}

// combineEverywhere runs a task's part. out may be in.
func combineEverywhere[T, In, Out any](t *engine.Task, v *invocation[T, In, Out], in, out []T, op Operator[T]) error {
	if v.bytes(len(in)) < t.Thresholds().Levels.Allreduce {
		return combineByLevels(t, v, in, out, op)
	}
	f := foldOf(t.N)
	if partner, absent := f.absent(t.ID); absent {
		if err := v.sendElements(t, partner, 0, in); err != nil {
			return err
		}
		return v.receiveInto(t, partner, 1, out)
	}
	partner, pair := f.partner(t.ID)
	if pair {
		right, err := v.receiveElements(t, partner, 0, len(in))
		if err != nil {
			return err
		}
		err = op.combine(t, out, in, right.elements)
		right.release()
		if err != nil {
			return err
		}
		in = out
	}
	algorithm := doubling[T, In, Out]
	if v.bytes(len(in)) >= t.Thresholds().Halving {
		algorithm = halving[T, In, Out]
	}
	if err := algorithm(t, v, f, in, out, op); err != nil {
		return err
	}
	if pair {
		return v.sendElements(t, partner, 1, out)
	}
	return nil
}

// combineInOrder combines own with received elements. Those of lower tasks are on the
// left. Lower says that the own ones are.
func combineInOrder[T any](t *engine.Task, op Operator[T], into, mine, theirs []T, lower bool) error {
	if lower {
		return op.combine(t, into, mine, theirs)
	}
	return op.combine(t, into, theirs, mine)
}

// doubling is recursive doubling: in each step a task exchanges all elements with a
// partner at twice the distance. It needs the fewest steps.
func doubling[T, In, Out any](t *engine.Task, v *invocation[T, In, Out], f fold, in, out []T, op Operator[T]) error {
	me := f.index(t.ID)
	copy(out, in)
	for step, mask := 2, 1; mask < f.power; step, mask = step+1, 2*mask {
		other := f.task(me ^ mask)
		if err := v.sendElements(t, other, step, out); err != nil {
			return err
		}
		theirs, err := v.receiveElements(t, other, step, len(out))
		if err != nil {
			return err
		}
		err = combineInOrder(t, op, out, out, theirs.elements, me&mask == 0)
		theirs.release()
		if err != nil {
			return err
		}
	}
	return nil
}

// halving is recursive halving and doubling (Rabenseifner 2004): in each step a task
// combines half of what it has left, so that it ends up with a share of the result; then
// the shares are collected in reverse. It needs twice the steps, but sends each element
// only twice.
func halving[T, In, Out any](t *engine.Task, v *invocation[T, In, Out], f fold, in, out []T, op Operator[T]) error {
	me := f.index(t.ID)
	sum := v.newBuffer(t, len(in)) // each of its elements is sent at most once
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
		if err := v.sendBuffer(t, other, step, sum, give); err != nil {
			return err
		}
		theirs, err := v.receiveElements(t, other, step, keep.to-keep.from)
		if err != nil {
			return err
		}
		err = combineInOrder(t, op, sum.elements[keep.from:keep.to], in[keep.from:keep.to], theirs.elements, me&mask == 0)
		theirs.release()
		if err != nil {
			return err
		}
		in, mine, given = sum.elements, keep, append(given, give)
	}
	copy(out[mine.from:mine.to], in[mine.from:mine.to])
	return collectShares(t, v, f, sum, mine, given, step, out)
}

// collectShares collects the shares of the result: each step doubles what a task has.
func collectShares[T, In, Out any](t *engine.Task, v *invocation[T, In, Out], f fold, sum typedBuffer[T], mine span,
	given []span, step int, out []T,
) error {
	me := f.index(t.ID)
	for i := len(given) - 1; i >= 0; i, step = i-1, step+1 {
		other, lacking := f.task(me^1<<i), given[i]
		var err error
		if i == len(given)-1 {
			err = v.sendBuffer(t, other, step, sum, mine)
		} else {
			err = v.sendElements(t, other, step, out[mine.from:mine.to])
		}
		if err != nil {
			return err
		}
		if err := v.receiveInto(t, other, step, out[lacking.from:lacking.to]); err != nil {
			return err
		}
		mine = span{min(mine.from, lacking.from), max(mine.to, lacking.to)}
	}
	return nil
}
