package collective

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
)

// Corrected makes a Reduce or an Allreduce that up to f dead, before or during
// it, cost nothing: no view, no takeover and no Restore. The result has the inputs
// of all who live, and of each of the dead either its input or not. The root must
// live; that of an Allreduce is task 0. Operators must be commutative, unless the
// root is 0.
//
// Nobody agrees on who is dead. A process that waits for another one's message
// goes on without it when the link says that nobody is there ([Engine.Lost]), or
// after some seconds.
func Corrected(f int) Option {
	return func(o *options) { o.strength, o.dead = corrected, f }
}

// TooManyDeadError says that more have died than a corrected call was made for, or
// the root.
type TooManyDeadError struct {
	Call uint64
	Rank int // who says so
	F    int // how many were allowed for
}

func (e *TooManyDeadError) Error() string {
	return fmt.Sprintf("collective: call %d: more than %d processes have died, or the root, says rank %d", e.Call, e.F, e.Rank)
}

// stepPatience is how long the message of one process that may be dead is waited
// for. In a group that may be f times as long, so who waits for more than a group
// waits longer.
const stepPatience = 2 * time.Second

func (c *correction) patience(step int) time.Duration {
	switch step {
	case withinGroup:
		return stepPatience
	case upTree:
		return time.Duration(c.f+1) * stepPatience
	}
	return time.Duration(2*c.f+2) * stepPatience
}

// correction is the shape of a corrected call (Küttler and Härtig, Fault-tolerant
// Reduce and Allreduce operations based on correction, 2026). Places count from
// the root, which has 0. The others are put into groups of f+1, each member of
// which is in another subtree of the root. Within a group everybody tells
// everybody its input; so each subtree has all inputs, and one without a dead
// process brings them to the root. Those who are left over make a last group with
// the root itself.
//
// Messages: f(f+1)·⌊(n−1)/(f+1)⌋ + a(a−1) within groups, where a is the size of the
// last one, root included; and n−1 along the tree.
type correction struct {
	task *task
	root int
	f    int
	// place is this task's; group and subtree are what it belongs to. The last
	// group has the number groups.
	place, group, subtree, groups int
}

func correctionOf(t *task, root, f int) *correction {
	c := &correction{task: t, root: root, f: f, groups: (t.n - 1) / (f + 1)}
	c.place = (t.id - root + t.n) % t.n
	c.group, c.subtree = c.groups, 0
	if c.place > 0 {
		c.group, c.subtree = (c.place-1)/(f+1), (c.place-1)%(f+1)
	}
	return c
}

// id is the task at a place.
func (c *correction) id(place int) int { return (place + c.root) % c.task.n }

// mates are the places of the same group, its own included, in order.
func (c *correction) mates() (places []int) {
	if c.group == c.groups {
		places = append(places, 0)
	}
	for p := c.group*(c.f+1) + 1; p < min((c.group+1)*(c.f+1)+1, c.task.n); p++ {
		places = append(places, p)
	}
	return places
}

// at is the place of a group's member in a subtree.
func (c *correction) at(group, subtree int) int { return group*(c.f+1) + 1 + subtree }

// parent is where a place's values go. Groups make a binomial tree in each
// subtree; the last group's members are leaves, whose inputs the root has already.
func (c *correction) parent() int {
	switch {
	case c.group == 0 || c.groups == 0:
		return 0
	case c.group == c.groups:
		return c.at(0, c.subtree)
	}
	return c.at(c.group&(c.group-1), c.subtree)
}

// children are the places whose values come here, in order.
func (c *correction) children() (places []int) {
	if c.place == 0 {
		for s := range min(c.f+1, c.task.n-1) {
			places = append(places, c.at(0, s))
		}
		return places
	}
	if c.group == c.groups {
		return nil
	}
	for bit := 1; c.group&bit == 0 && c.group+bit < c.groups; bit *= 2 {
		places = append(places, c.at(c.group+bit, c.subtree))
	}
	if leaf := c.at(c.groups, c.subtree); c.group == 0 && leaf < c.task.n {
		places = append(places, leaf)
	}
	return places
}

// Steps of a corrected call.
const (
	withinGroup = iota
	upTree
	downTree
	withinGroupAgain
)

// reduceCorrected brings all inputs to the root, whose sum is then the result.
func reduceCorrected[T, In, Out any](c *correction, j *job[T, In, Out], sum []T, op Operator[T]) error {
	values, err := exchangeInGroup(c, j, sum)
	if err != nil {
		return err
	}
	if c.place == 0 {
		return c.collectAtRoot(func(subtree []byte) error {
			if subtree != nil {
				right, err := j.like(subtree, len(sum))
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
		right, err := j.like(b[8:], len(sum))
		if err != nil {
			return err
		}
		op.Combine(total, total, right)
	}
	return sendTotal(c, j, total, complete)
}

// exchangeInGroup tells the group this task's input, and returns theirs, in order:
// nil for those that do not come.
func exchangeInGroup[T, In, Out any](c *correction, j *job[T, In, Out], own []T) ([][]T, error) {
	b, err := j.encode(own)
	if err != nil {
		return nil, err
	}
	mates := c.mates()
	for _, p := range mates {
		if p != c.place {
			if err := c.task.send(c.id(p), withinGroup, b); err != nil {
				return nil, err
			}
		}
	}
	values := make([][]T, len(mates))
	for i, p := range mates {
		if p == c.place {
			values[i] = own
			continue
		}
		b, ok, err := c.receiveLive(p, withinGroup)
		if err != nil {
			return nil, err
		}
		if ok {
			if values[i], err = j.like(b, len(own)); err != nil {
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
func sendTotal[T, In, Out any](c *correction, j *job[T, In, Out], total []T, complete bool) error {
	b := make([]byte, 8)
	if complete && c.group < c.groups {
		binary.BigEndian.PutUint64(b, 1)
		encoded, err := j.encode(total)
		if err != nil {
			return err
		}
		b = append(b, encoded...)
	}
	return c.task.send(c.id(c.parent()), upTree, b)
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
	return &TooManyDeadError{Call: c.task.op.number, Rank: c.task.e.config.Rank, F: c.f}
}

// spreadCorrected brings bytes from the root to all who live: down the same
// tree, and from everybody to its group. A subtree without a dead process has
// them from the root, and has a member in every group.
func (c *correction) spreadCorrected(b []byte) ([]byte, error) {
	if c.place > 0 {
		froms := []int{c.id(c.parent())}
		steps := []int{downTree}
		for _, p := range c.mates() {
			if p != c.place {
				froms, steps = append(froms, c.id(p)), append(steps, withinGroupAgain)
			}
		}
		var err error
		if b, err = c.task.receiveAny(froms, steps, c.patience(downTree)); err != nil {
			return nil, err
		}
		if b == nil {
			return nil, c.tooMany()
		}
	}
	for _, child := range c.children() {
		if err := c.task.send(c.id(child), downTree, b); err != nil {
			return nil, err
		}
	}
	for _, p := range c.mates() {
		if p != c.place {
			if err := c.task.send(c.id(p), withinGroupAgain, b); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// correctedReduce and correctedAllreduce are a task's part.
func correctedReduce[T any](t *task, j *job[T, []T, []T], root, f int, op Operator[T]) error {
	sum, err := j.contribution(t)
	if err != nil {
		return err
	}
	if err := reduceCorrected(correctionOf(t, root, f), j, sum, op); err != nil {
		return err
	}
	if t.id == root {
		j.deliver(t, sum)
	}
	return nil
}

func correctedAllreduce[T any](t *task, j *job[T, []T, []T], f int, op Operator[T]) error {
	sum, err := j.contribution(t)
	if err != nil {
		return err
	}
	c := correctionOf(t, 0, f)
	if err := reduceCorrected(c, j, sum, op); err != nil {
		return err
	}
	b, err := j.encode(sum)
	if err != nil {
		return err
	}
	if b, err = c.spreadCorrected(b); err != nil {
		return err
	}
	out, err := j.like(b, len(sum))
	if err == nil {
		j.deliver(t, append(make([]T, 0, len(out)), out...))
	}
	return err
}

// Lost says that nobody is there at a rank, as far as the link knows: what has
// not come from it will not. Found takes that back.
func (e *Engine) Lost(rank int) { e.setLost(rank, true) }

// Found says that somebody is there at a rank.
func (e *Engine) Found(rank int) { e.setLost(rank, false) }

func (e *Engine) setLost(rank int, lost bool) {
	if rank < 0 || rank >= e.config.Size {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard[rank].lost = lost
	for _, o := range e.ops {
		o.changed.give()
	}
}

// receiveLive waits for a letter that comes only if its sender lives.
func (c *correction) receiveLive(place, step int) (body []byte, ok bool, err error) {
	body, err = c.task.receiveAny([]int{c.id(place)}, []int{step}, c.patience(step))
	return body, body != nil, err
}

// receiveAny waits for the first of several letters, which are not empty. It
// returns nil if none will come.
func (t *task) receiveAny(froms, steps []int, patience time.Duration) ([]byte, error) {
	e, o := t.e, t.op
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	for o.err == nil {
		lost := true
		for i, from := range froms {
			if s := o.slot(key{steps[i], from, t.id}); s.here {
				return s.body, nil
			}
			lost = lost && e.heard[from].lost
		}
		if lost || ctx.Err() != nil {
			return nil, t.ctx.Err()
		}
		changed := o.changed.wait()
		e.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		e.mu.Lock()
	}
	return nil, o.err
}
