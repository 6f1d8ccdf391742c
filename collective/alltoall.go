package collective

import (
	"context"
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Alltoall sends part i of task k's input to task i, which returns it as part k. The
// lengths of parts may differ.
func Alltoall[T any](ctx context.Context, c Communicator, parts [][]T, options ...Option) ([][]T, error) {
	s := engine.Signature{
		Kind: engine.Alltoall, Root: engine.NoRoot, Length: engine.NoLength,
		Detail: engine.DetailOf(typeName[T]()),
	}
	v, err := newInvocation[T, [][]T, [][]T](&s, parts, options)
	if err != nil {
		return nil, err
	}
	if err := c.comm().checkParts(len(parts)); err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		all, err := swap(t, v)
		if err == nil {
			v.deliver(t, all)
		}
		return err
	})
	return result(v.out, err)
}

// ReduceScatter combines part i of all tasks, in the order of tasks, and returns it to
// task i. Part i has the same length in all inputs.
func ReduceScatter[T any](ctx context.Context, c Communicator, parts [][]T, op Operator[T],
	options ...Option,
) ([]T, error) {
	s := engine.Signature{
		Kind: engine.ReduceScatter, Root: engine.NoRoot, Length: engine.NoLength,
		Detail: engine.DetailOf(typeName[T](), op.signatureName()),
	}
	v, err := newInvocation[T, [][]T, []T](&s, parts, options)
	if err != nil {
		return nil, err
	}
	if err := c.comm().checkParts(len(parts)); err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		all, err := swap(t, v)
		if err != nil {
			return err
		}
		sum := all[0]
		for task, part := range all[1:] {
			if len(part) != len(sum) {
				return fmt.Errorf("collective: part %d of task %d has %d elements, of task 0 %d", t.ID, task+1, len(part), len(sum))
			}
			if err := op.combine(t, sum, sum, part); err != nil {
				return err
			}
		}
		if err := op.confirm(t); err != nil {
			return err
		}
		v.deliver(t, sum)
		return nil
	})
	return result(v.out, err)
}

// swap exchanges parts with every task: directly, or by Bruck's algorithm if that saves
// messages.
func swap[T, In, Out any](t *engine.Task, v *invocation[T, In, Out]) ([][]T, error) {
	parts, err := v.inputParts(t)
	if err != nil {
		return nil, err
	}
	all := make([][]T, t.N)
	all[t.ID] = append(v.partBuffer(t, t.ID, len(parts[t.ID]))[:0], parts[t.ID]...)
	if t.N >= t.Thresholds().Bruck {
		return all, v.swapTogether(t, parts, all)
	}
	for round := range rounds(t.N) {
		if partner := opponent(t.ID, round, t.N); partner != t.ID {
			if err := v.sendElements(t, partner, direct, parts[partner]); err != nil {
				return nil, err
			}
		}
	}
	for round := range rounds(t.N) {
		if partner := opponent(t.ID, round, t.N); partner != t.ID {
			all[partner], err = v.receivePart(t, partner)
			if err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// direct is the step of a part that is sent on its own. A part does not wait for those of
// the rounds before, but is sent after them.
const direct = 64

// receivePart receives a part that was sent on its own.
func (v *invocation[T, In, Out]) receivePart(t *engine.Task, from int) ([]T, error) {
	p, err := t.ReceivePayload(from, direct)
	if err != nil {
		return nil, err
	}
	return v.openPart(t, from, p)
}

// openPart returns the elements of a payload: in the caller's memory, or where they are,
// and then the payload belongs to the caller.
func (v *invocation[T, In, Out]) openPart(t *engine.Task, from int, p engine.Payload) ([]T, error) {
	elements, err := v.decode(p.Bytes)
	if err != nil || !v.isRaw() {
		return elements, err
	}
	if into := v.partBuffer(t, from, len(elements)); into != nil {
		copy(into, elements)
		p.Release()
		return into, nil
	}
	return elements, nil
}

// partBuffer returns the caller's memory for a part, or nil.
func (v *invocation[T, In, Out]) partBuffer(t *engine.Task, part, n int) []T {
	if !t.Own() {
		return nil
	}
	var memory []T
	switch into := any(v.into).(type) {
	case [][]T:
		if part < len(into) {
			memory = into[part]
		}
	case map[int][]T:
		memory = into[part]
	}
	if cap(memory) < n {
		return nil
	}
	return memory[:n]
}

// rounds and opponent are a 1-factorization of the complete graph (Stengler 2017, §3.6):
// in every round the tasks meet in pairs, so that no task is sent two messages at once.
func rounds(n int) int { return n - 1 + n%2 }

func opponent(id, round, n int) int {
	if n%2 == 1 {
		return (round - id + n) % n // itself: the task pauses
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
