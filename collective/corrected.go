package collective

import (
	"github.com/pleach-go/pleach/internal/collective/engine"
)

// correctedReduce runs a task's part in a Reduce.
func correctedReduce[T any](t *engine.Task, v *invocation[T, []T, []T], root, f int, op Operator[T]) error {
	sum, err := v.inputCopy(t)
	if err != nil {
		return err
	}
	if err := reduceCorrected(correctionOf(t, root, f), v, sum, op, nil); err != nil {
		return err
	}
	if t.ID == root {
		v.deliver(t, sum)
	}
	return nil
}

// correctedAllreduce runs a task's part: a Reduce to task 0, and a broadcast from there.
func correctedAllreduce[T any](t *engine.Task, v *invocation[T, []T, []T], f int, op Operator[T]) error {
	sum, err := v.inputCopy(t)
	if err != nil {
		return err
	}
	c := correctionOf(t, 0, f)
	results := c.results()
	if err := reduceCorrected(c, v, sum, op, results); err != nil {
		return err
	}
	b, err := v.encode(sum)
	if err != nil {
		return err
	}
	b, err = c.spreadCorrected(b, results)
	if err != nil {
		return err
	}
	out, err := v.decodeN(b, len(sum))
	if err == nil {
		v.deliver(t, append(make([]T, 0, len(out)), out...))
	}
	return err
}
