package collective

import "fmt"

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
	return func(o *options) { o.failureMode, o.dead = corrected, f }
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

// correctedReduce and correctedAllreduce are a task's part.
func correctedReduce[T any](t *task, j *invocation[T, []T, []T], root, f int, op Operator[T]) error {
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

func correctedAllreduce[T any](t *task, j *invocation[T, []T, []T], f int, op Operator[T]) error {
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
