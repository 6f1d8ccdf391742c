package collective

import (
	"encoding/binary"
	"slices"
)

// Steps of a corrected call.
const (
	withinGroup = iota
	upTree
	downTree
	withinGroupAgain
)

// reduceCorrected brings all inputs to the root. At the root, sum is the result then.
func reduceCorrected[T, In, Out any](c *correction, v *invocation[T, In, Out], sum []T, op Operator[T]) error {
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
				op.Combine(sum, sum, right)
			}
			for _, right := range values[1:] {
				if right != nil {
					op.Combine(sum, sum, right)
				}
			}
			return nil
		})
	}
	total := combineAll(values, op)
	complete := true
	for _, child := range c.children() {
		leaf := (child-1)/(c.f+1) == c.groups
		b, ok, err := c.receiveLive(child, upTree)
		if err != nil {
			return err
		}
		if complete = complete && (leaf || ok && isComplete(b)); !complete || leaf {
			continue
		}
		right, err := v.decodeN(b[8:], len(sum))
		if err != nil {
			return err
		}
		op.Combine(total, total, right)
	}
	return sendTotal(c, v, total, complete)
}

// exchangeInGroup sends this task's input to its group, and returns the group's inputs in
// order, nil for those that do not arrive.
func exchangeInGroup[T, In, Out any](c *correction, v *invocation[T, In, Out], own []T) ([][]T, error) {
	b, err := v.encode(own)
	if err != nil {
		return nil, err
	}
	group := c.peers()
	for _, p := range group {
		if p != c.vrank {
			if err := c.task.Send(c.id(p), withinGroup, b); err != nil {
				return nil, err
			}
		}
	}
	values := make([][]T, len(group))
	for i, p := range group {
		if p == c.vrank {
			values[i] = own
			continue
		}
		b, ok, err := c.receiveLive(p, withinGroup)
		if err != nil {
			return nil, err
		}
		if ok {
			if values[i], err = v.decodeN(b, len(own)); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// combineAll combines the values that are not nil.
func combineAll[T any](values [][]T, op Operator[T]) (total []T) {
	for _, v := range values {
		switch {
		case v == nil:
		case total == nil:
			total = append(make([]T, 0, len(v)), v...)
		default:
			op.Combine(total, total, v)
		}
	}
	return total
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
// there is one, unless more than f processes have died.
func (c *correction) collectAtRoot(take func(subtree []byte) error) error {
	if c.groups == 0 {
		return take(nil)
	}
	for _, child := range c.children() {
		b, ok, err := c.receiveLive(child, upTree)
		if err != nil {
			return err
		}
		if ok && isComplete(b) {
			return take(b[8:])
		}
	}
	return c.tooMany()
}

func (c *correction) tooMany() error {
	return &TooManyDeadError{Call: c.task.Call(), Rank: c.task.Rank(), F: c.f}
}

// spreadCorrected sends bytes from the root to all live processes: down the same tree, and
// from every task to its group. A subtree without a dead process gets them from the root,
// and has a member in every group.
func (c *correction) spreadCorrected(b []byte) ([]byte, error) {
	if c.vrank > 0 {
		froms := []int{c.id(c.parent())}
		steps := []int{downTree}
		for _, p := range c.peers() {
			if p != c.vrank {
				froms, steps = append(froms, c.id(p)), append(steps, withinGroupAgain)
			}
		}
		var err error
		if b, err = c.task.ReceiveAny(froms, steps, c.timeout(downTree)); err != nil {
			return nil, err
		}
		if b == nil {
			return nil, c.tooMany()
		}
	}
	for _, child := range slices.Backward(c.children()) { // the longest path first
		if err := c.task.Send(c.id(child), downTree, b); err != nil {
			return nil, err
		}
	}
	for _, p := range c.peers() {
		if p != c.vrank {
			if err := c.task.Send(c.id(p), withinGroupAgain, b); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}
