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

// reduceCorrected brings all inputs to the root, whose sum is then the result.
func reduceCorrected[T, In, Out any](c *correction, j *invocation[T, In, Out], sum []T, op Operator[T]) error {
	values, err := exchangeInGroup(c, j, sum)
	if err != nil {
		return err
	}
	if c.vrank == 0 {
		return c.collectAtRoot(func(subtree []byte) error {
			if subtree != nil {
				right, err := j.decodeN(subtree, len(sum))
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
		right, err := j.decodeN(b[8:], len(sum))
		if err != nil {
			return err
		}
		op.Combine(total, total, right)
	}
	return sendTotal(c, j, total, complete)
}

// exchangeInGroup tells the group this task's input, and returns theirs, in order:
// nil for those that do not come.
func exchangeInGroup[T, In, Out any](c *correction, j *invocation[T, In, Out], own []T) ([][]T, error) {
	b, err := j.encode(own)
	if err != nil {
		return nil, err
	}
	mates := c.peers()
	for _, p := range mates {
		if p != c.vrank {
			if err := c.task.Send(c.id(p), withinGroup, b); err != nil {
				return nil, err
			}
		}
	}
	values := make([][]T, len(mates))
	for i, p := range mates {
		if p == c.vrank {
			values[i] = own
			continue
		}
		b, ok, err := c.receiveLive(p, withinGroup)
		if err != nil {
			return nil, err
		}
		if ok {
			if values[i], err = j.decodeN(b, len(own)); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// combineAll combines the values that are there.
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

// sendTotal sends what a subtree has, and whether it is all. A leaf of the last
// group only says that it is there.
func sendTotal[T, In, Out any](c *correction, j *invocation[T, In, Out], total []T, complete bool) error {
	b := make([]byte, 8)
	if complete && c.group < c.groups {
		binary.BigEndian.PutUint64(b, 1)
		encoded, err := j.encode(total)
		if err != nil {
			return err
		}
		b = append(b, encoded...)
	}
	return c.task.Send(c.id(c.parent()), upTree, b)
}

func isComplete(b []byte) bool { return len(b) >= 8 && binary.BigEndian.Uint64(b) == 1 }

// collectAtRoot takes the total of a subtree in which nobody has died. There is
// one of f+1, unless more than f have.
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

// spreadCorrected brings bytes from the root to all who live: down the same
// tree, and from everybody to its group. A subtree without a dead process has
// them from the root, and has a member in every group.
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
	for _, child := range slices.Backward(c.children()) { // the longest way first
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
