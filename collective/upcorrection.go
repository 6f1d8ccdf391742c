package collective

import (
	"encoding/binary"
	"slices"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Steps of a corrected call.
const (
	withinGroup = iota
	upTree
	downTree
	withinGroupAgain
)

// reduceCorrected brings all inputs to the root. At the root, sum is the result then. Other
// tasks continue as soon as one of the results has arrived, if the root sends it to all.
func reduceCorrected[T, In, Out any](c *correction, v *invocation[T, In, Out], sum []T, op Operator[T],
	results []engine.Awaited,
) error {
	values, err := exchangeInGroup(c, v, sum)
	if err != nil {
		return err
	}
	if c.vrank == 0 {
		return c.collectAtRoot(func(subtree []byte) error {
			if subtree != nil {
				right, err := v.decodeN(subtree, len(sum))
				if err != nil {
					return err
				}
				if err := op.combine(c.task, sum, sum, right); err != nil {
					return err
				}
			}
			for _, right := range values[1:] {
				if right == nil {
					continue
				}
				if err := op.combine(c.task, sum, sum, right); err != nil {
					return err
				}
			}
			return nil
		})
	}
	total, err := combineAll(c.task, values, op)
	if err != nil {
		return err
	}
	below, err := c.receiveTotals(results)
	if err != nil {
		return err
	}
	complete := !slices.ContainsFunc(below, func(m engine.Awaited) bool { return !isComplete(m.Body) })
	for i := 0; complete && i < len(below); i++ {
		right, err := v.decodeN(below[i].Body[8:], len(sum))
		if err != nil {
			return err
		}
		if err := op.combine(c.task, total, total, right); err != nil {
			return err
		}
	}
	return sendTotal(c, v, total, complete)
}

// receiveTotals waits for the totals of the tasks below. Where a silent process is among
// them, the subtree is of no use. If the root sends the result to all, no guess is needed: the
// result comes from elsewhere.
func (c *correction) receiveTotals(results []engine.Awaited) ([]engine.Awaited, error) {
	n := len(c.below())
	if len(results) == 0 {
		totals := c.await(c.below(), upTree)
		return totals, c.task.ReceiveInTime(totals, n+1) // n: levels below, each of which may wait
	}
	messages := append(c.await(c.below(), upTree), results...)
	err := c.task.ReceiveUntil(messages, func() bool {
		useless := func(m engine.Awaited) bool { return m.Gone || m.Here && !isComplete(m.Body) }
		missing := func(m engine.Awaited) bool { return !m.Here }
		return slices.ContainsFunc(messages[:n], useless) || !slices.ContainsFunc(messages[:n], missing) ||
			slices.ContainsFunc(messages[n:], func(m engine.Awaited) bool { return m.Here })
	}, c.patience())
	return messages[:n], err
}

// exchangeInGroup sends this task's input to its group, and returns the group's inputs in
// order, nil for those that do not arrive.
func exchangeInGroup[T, In, Out any](c *correction, v *invocation[T, In, Out], own []T) ([][]T, error) {
	b, err := v.encode(own)
	if err != nil {
		return nil, err
	}
	inputs := c.await(c.others(), withinGroup)
	for _, m := range inputs {
		if err := c.task.Send(m.From, withinGroup, b); err != nil {
			return nil, err
		}
	}
	if err := c.task.ReceiveInTime(inputs, 1); err != nil {
		return nil, err
	}
	values := make([][]T, len(inputs))
	for i, m := range inputs {
		if m.Here {
			values[i], err = v.decodeN(m.Body, len(own))
			if err != nil {
				return nil, err
			}
		}
	}
	return slices.Insert(values, slices.Index(c.peers(), c.vrank), own), nil
}

// combineAll combines the values that are not nil.
func combineAll[T any](t *engine.Task, values [][]T, op Operator[T]) (total []T, err error) {
	for _, v := range values {
		switch {
		case v == nil:
		case total == nil:
			total = append(make([]T, 0, len(v)), v...)
		default:
			if err := op.combine(t, total, total, v); err != nil {
				return nil, err
			}
		}
	}
	return total, nil
}

// sendTotal sends a subtree's total, and whether it is complete. A leaf of the last group
// only shows that it lives.
func sendTotal[T, In, Out any](c *correction, v *invocation[T, In, Out], total []T, complete bool) error {
	b := make([]byte, 8)
	if complete && c.group < c.groups {
		binary.BigEndian.PutUint64(b, 1)
		encoded, err := v.encode(total)
		if err != nil {
			return err
		}
		b = append(b, encoded...)
	}
	return c.task.Send(c.id(c.parent()), upTree, b)
}

func isComplete(b []byte) bool { return len(b) >= 8 && binary.BigEndian.Uint64(b) == 1 }

// collectAtRoot passes on the total of a subtree without a dead process. Of f+1 subtrees
// there is one, unless more than f processes are dead or silent.
func (c *correction) collectAtRoot(take func(subtree []byte) error) error {
	if c.groups == 0 {
		return take(nil)
	}
	totals := c.await(c.below(), upTree)
	first := func() int {
		return slices.IndexFunc(totals, func(m engine.Awaited) bool { return isComplete(m.Body) })
	}
	err := c.task.ReceiveUntil(totals, func() bool {
		return first() >= 0 || !slices.ContainsFunc(totals, func(m engine.Awaited) bool { return !m.Settled() })
	}, c.patience())
	switch {
	case err != nil:
		return err
	case first() < 0:
		return c.tooMany()
	}
	return take(totals[first()].Body[8:])
}

func (c *correction) tooMany() error {
	return &TooManyDeadError{Call: c.task.Call(), Rank: c.task.Rank(), F: c.f}
}

// results returns the messages that may bring the result: one comes from above, and one from
// each other member of the group.
func (c *correction) results() []engine.Awaited {
	if c.vrank == 0 {
		return nil
	}
	return append(c.await([]int{c.parent()}, downTree), c.await(c.others(), withinGroupAgain)...)
}

// spreadCorrected sends bytes from the root to all live processes: down the same tree, and
// from every task to its group. A subtree without a dead process gets them from the root,
// and has a member in every group.
func (c *correction) spreadCorrected(b []byte, results []engine.Awaited) ([]byte, error) {
	if c.vrank > 0 {
		first := func() int {
			return slices.IndexFunc(results, func(m engine.Awaited) bool { return m.Here })
		}
		err := c.task.ReceiveUntil(results, func() bool {
			return first() >= 0 || !slices.ContainsFunc(results, func(m engine.Awaited) bool { return !m.Gone })
		}, 2*c.patience())
		if err != nil {
			return nil, err
		}
		if first() < 0 {
			return nil, c.tooMany()
		}
		b = results[first()].Body
	}
	for _, child := range slices.Backward(c.children()) { // the longest path first
		if err := c.task.Send(c.id(child), downTree, b); err != nil {
			return nil, err
		}
	}
	for _, p := range c.others() {
		if err := c.task.Send(c.id(p), withinGroupAgain, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}
