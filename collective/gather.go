package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Gather returns all tasks' elements, by task, to the owner of the root's task, and nil to
// others. The lengths of inputs may differ.
func Gather[T any](ctx context.Context, c Communicator, root int, in []T, options ...Option) ([][]T, error) {
	s := engine.Signature{Kind: engine.Gather, Root: root, Length: engine.NoLength, Detail: engine.DetailOf(typeName[T]())}
	v, err := newInvocation[T, []T, [][]T](&s, in, options)
	if err != nil {
		return nil, err
	}
	if err := c.comm().checkRoot(root); err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		b, err := v.ownBlock(t)
		if err != nil {
			return err
		}
		b, err = collect(t, root, b)
		if err != nil || t.ID != root {
			return err
		}
		all, err := decodeBlocks(v, b, t.N)
		if err == nil {
			v.deliverAtRoot(t, all)
		}
		return err
	})
	return result(v.out, err)
}

// ownBlock returns a task's input as a block.
func (v *invocation[T, In, Out]) ownBlock(t *engine.Task) ([]byte, error) {
	in, err := v.input(t)
	if err != nil {
		return nil, err
	}
	b, err := v.encode(any(in).([]T))
	if err != nil {
		return nil, err
	}
	return appendBlock(make([]byte, 0, len(b)+blockHead+8), t.ID, b), nil
}

// decodeBlocks returns the elements of every task.
func decodeBlocks[T, In, Out any](v *invocation[T, In, Out], b []byte, n int) ([][]T, error) {
	blocks, err := cutBlocks(b, n)
	if err != nil {
		return nil, err
	}
	all := make([][]T, n)
	for task, block := range blocks {
		if block == nil {
			return nil, fmt.Errorf("%w: the block of task %d is missing", engine.ErrMessage, task)
		}
		all[task], err = v.decode(block)
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// collect sends blocks up a binomial tree. It returns them all at the root.
func collect(t *engine.Task, root int, b []byte) ([]byte, error) {
	vrank := (t.ID - root + t.N) % t.N
	for step, mask := 0, 1; mask < t.N; step, mask = step+1, 2*mask {
		if vrank&mask != 0 {
			return nil, t.Send((vrank-mask+root)%t.N, step, b)
		}
		if vrank+mask < t.N {
			theirs, err := t.Receive((vrank+mask+root)%t.N, step)
			if err != nil {
				return nil, err
			}
			b = append(b, theirs...)
		}
	}
	return b, nil
}

// Allgather returns all tasks' elements, by task, to all. The lengths of inputs may
// differ.
func Allgather[T any](ctx context.Context, c Communicator, in []T, options ...Option) ([][]T, error) {
	s := engine.Signature{
		Kind: engine.Allgather, Root: engine.NoRoot, Length: engine.NoLength,
		Detail: engine.DetailOf(typeName[T]()),
	}
	v, err := newInvocation[T, []T, [][]T](&s, in, options)
	if err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		b, err := v.ownBlock(t)
		if err != nil {
			return err
		}
		b, err = exchange(t, b)
		if err != nil {
			return err
		}
		// Messages are logged and must not change, so the caller gets a copy.
		all, err := decodeBlocks(v, slices.Clone(b), t.N)
		if err == nil {
			v.deliver(t, all)
		}
		return err
	})
	return result(v.out, err)
}

// exchange is Bruck's algorithm (Bruck et al. 1997): in each step the number of blocks that
// a task has doubles. They are those of the tasks that follow it.
func exchange(t *engine.Task, b []byte) ([]byte, error) {
	for step, d := 0, 1; d < t.N; step, d = step+1, 2*d {
		some := b
		if left := t.N - d; left < d {
			var err error
			some, err = firstBlocks(b, left, t.N)
			if err != nil {
				return nil, err
			}
		}
		if err := t.Send((t.ID-d+t.N)%t.N, step, some); err != nil {
			return nil, err
		}
		theirs, err := t.Receive((t.ID+d)%t.N, step)
		if err != nil {
			return nil, err
		}
		// A new array each time, because the old one is logged as it was sent.
		b = slices.Concat(b, theirs)
	}
	return b, nil
}

// firstBlocks returns the first count blocks.
func firstBlocks(b []byte, count, tasks int) ([]byte, error) {
	rest := b
	for range count {
		var err error
		_, _, rest, err = cutBlock(rest, tasks)
		if err != nil {
			return nil, err
		}
	}
	return b[:len(b)-len(rest)], nil
}
