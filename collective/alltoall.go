package collective

import (
	"context"
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Alltoall gives every task its part of what each task has given: part i of task
// k becomes part k of task i. The parts' lengths may differ.
func Alltoall[T any](ctx context.Context, c Communicator, parts [][]T, options ...Option) ([][]T, error) {
	s := engine.Signature{Kind: engine.Alltoall, Root: engine.NoRoot, Length: engine.NoLength, Detail: detailOf(typeName[T]())}
	j, err := newInvocation[T, [][]T, [][]T](&s, parts, options)
	if err != nil {
		return nil, err
	}
	if err := c.comm().checkParts(len(parts)); err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		all, err := swap(t, j)
		if err == nil {
			j.deliver(t, all)
		}
		return err
	})
	return result(j.out, err)
}

// ReduceScatter combines part i of all tasks, in the order of tasks, and returns
// it to task i. All give parts of the same lengths.
func ReduceScatter[T any](ctx context.Context, c Communicator, parts [][]T, op Operator[T], options ...Option) ([]T, error) {
	s := engine.Signature{Kind: engine.ReduceScatter, Root: engine.NoRoot, Length: engine.NoLength, Detail: detailOf(typeName[T](), op.Name)}
	j, err := newInvocation[T, [][]T, []T](&s, parts, options)
	if err != nil {
		return nil, err
	}
	if err := c.comm().checkParts(len(parts)); err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		all, err := swap(t, j)
		if err != nil {
			return err
		}
		sum := all[0]
		for task, part := range all[1:] {
			if len(part) != len(sum) {
				return fmt.Errorf("collective: part %d of task %d has %d elements, of task 0 %d", t.ID, task+1, len(part), len(sum))
			}
			op.Combine(sum, sum, part)
		}
		j.deliver(t, sum)
		return nil
	})
	return result(j.out, err)
}

// swap exchanges parts with every task: directly, or together with others' parts if
// that saves messages.
func swap[T, In, Out any](t *engine.Task, j *invocation[T, In, Out]) ([][]T, error) {
	parts, err := j.inputParts(t)
	if err != nil {
		return nil, err
	}
	all := make([][]T, t.N)
	all[t.ID] = append(j.partBuffer(t, t.ID, len(parts[t.ID]))[:0], parts[t.ID]...)
	if t.N >= t.Thresholds().Bruck {
		return all, j.swapTogether(t, parts, all)
	}
	for round := range rounds(t.N) {
		if partner := opponent(t.ID, round, t.N); partner != t.ID {
			if err := j.sendElements(t, partner, direct, parts[partner]); err != nil {
				return nil, err
			}
		}
	}
	for round := range rounds(t.N) {
		if partner := opponent(t.ID, round, t.N); partner != t.ID {
			if all[partner], err = j.receivePart(t, partner); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// direct is the step of a part that goes from its sender to its receiver alone. Parts
// of one round do not wait for those of the one before, but go out in that order.
const direct = 64

// receivePart receives a part that was sent directly.
func (j *invocation[T, In, Out]) receivePart(t *engine.Task, from int) ([]T, error) {
	p, err := t.ReceivePayload(from, direct)
	if err != nil {
		return nil, err
	}
	return j.openPart(t, from, p)
}

// openPart returns the elements on a page: where the caller wants them, or where
// they are, and then the page is the caller's.
func (j *invocation[T, In, Out]) openPart(t *engine.Task, from int, p engine.Payload) ([]T, error) {
	elements, err := j.decode(p.Bytes)
	if err != nil || !j.isRaw() {
		return elements, err
	}
	if into := j.partBuffer(t, from, len(elements)); into != nil {
		copy(into, elements)
		p.Release()
		return into, nil
	}
	return elements, nil
}

// partSpace returns the caller's room for a part, or nil if there is none.
func (j *invocation[T, In, Out]) partBuffer(t *engine.Task, part, n int) []T {
	if into, ok := any(j.into).([][]T); ok && t.Own() && part < len(into) && cap(into[part]) >= n {
		return into[part][:n]
	}
	return nil
}

// rounds is how many it takes to meet everybody, and opponent whom a task meets in
// one: a 1-factorization of the complete graph (Stengler 2017, §3.6). In every
// round the tasks meet in pairs, so that nobody is sent two messages at once.
func rounds(n int) int { return n - 1 + n%2 }

func opponent(id, round, n int) int {
	if n%2 == 1 {
		return (round - id + n) % n // itself: it has a rest
	}
	m := n - 1
	if id == m {
		return round * (n / 2) % m
	}
	if other := (round - id + m) % m; other != id {
		return other
	}
	return m
}
