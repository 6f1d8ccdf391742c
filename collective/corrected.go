package collective

import (
	"github.com/pleach-go/pleach/internal/collective/engine"
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
	return func(o *options) { o.mode, o.dead = engine.Corrected, f }
}

// correctedReduce and correctedAllreduce are a task's part.
func correctedReduce[T any](t *engine.Task, j *invocation[T, []T, []T], root, f int, op Operator[T]) error {
	sum, err := j.contribution(t)
	if err != nil {
		return err
	}
	if err := reduceCorrected(correctionOf(t, root, f), j, sum, op); err != nil {
		return err
	}
	if t.ID == root {
		j.deliver(t, sum)
	}
	return nil
}

func correctedAllreduce[T any](t *engine.Task, j *invocation[T, []T, []T], f int, op Operator[T]) error {
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
	out, err := j.decodeN(b, len(sum))
	if err == nil {
		j.deliver(t, append(make([]T, 0, len(out)), out...))
	}
	return err
}
