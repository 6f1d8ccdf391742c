package collective

import (
	"context"
	"fmt"
	"reflect"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// job is a call with its types: what goes in for each task, and what comes out.
// T are the elements, In and Out slices of them or of parts.
type invocation[T, In, Out any] struct {
	in       In
	codec    Codec[T]
	restore  func(context.Context, int) (In, error)
	takeover func(int, Out)
	into     Out // where the result may go
	dead     int // how many a corrected call is made for
	out      Out // of this process's own task
}

// newJob sorts out a call's options.
func newInvocation[T, In, Out any](s *engine.Signature, in In, list []Option) (*invocation[T, In, Out], error) {
	o := optionsOf(list)
	j := &invocation[T, In, Out]{in: in}
	var ok bool
	if j.restore, ok = o.restore.(func(context.Context, int) (In, error)); !ok && o.restore != nil {
		return nil, wrongType[func(context.Context, int) (In, error)]("Restore", o.restore)
	}
	if j.takeover, ok = o.takeover.(func(int, Out)); !ok && o.takeover != nil {
		return nil, wrongType[func(int, Out)]("Takeover", o.takeover)
	}
	if j.into, ok = o.into.(Out); !ok && o.into != nil {
		return nil, wrongType[Out]("Into", o.into)
	}
	if o.mode == engine.Corrected && (o.dead < 0 || s.Kind != engine.Reduce && s.Kind != engine.Allreduce) {
		return nil, fmt.Errorf("collective: Corrected(%d) of %v: only Reduce and Allreduce have it, for 0 dead or more", o.dead, s.Kind)
	}
	s.Mode, j.dead = o.mode, o.dead
	s.Detail += uint64(o.dead)
	switch element := elementOf[T](); {
	case o.codec != nil:
		if j.codec, ok = o.codec.(Codec[T]); !ok {
			return nil, wrongType[Codec[T]]("WithCodec", o.codec)
		}
	case element != 0:
		s.Element, j.codec = element, memory[T]{}
	default:
		j.codec = gobs[T]{}
	}
	return j, nil
}

// typeName is how types are told apart.
func typeName[T any]() string { return reflect.TypeFor[T]().String() }

// input returns what a task puts in: what the caller has given, or what Restore
// brings back.
func (j *invocation[T, In, Out]) input(t *engine.Task) (in In, err error) {
	if t.Own() {
		return j.in, nil
	}
	err = ErrNoRestore
	if j.restore != nil {
		in, err = j.restore(t.Context(), t.ID)
	}
	if err != nil {
		return in, &RestoreError{Task: t.ID, Call: t.Call(), Err: err}
	}
	return in, nil
}

// deliver hands a task's result out.
func (j *invocation[T, In, Out]) deliver(t *engine.Task, out Out) {
	if t.Own() {
		j.out = out
		return
	}
	if j.takeover != nil {
		j.takeover(t.ID, out)
	}
}

// deliverAtRoot hands the root's result out: to the caller, too, who owns the
// root's task now.
func (j *invocation[T, In, Out]) deliverAtRoot(t *engine.Task, out Out) {
	if !t.Own() {
		t.UnlessReturned(func() { j.out = out })
	}
	j.deliver(t, out)
}

// encode turns elements into bytes of their own.
func (j *invocation[T, In, Out]) encode(elements []T) ([]byte, error) {
	b, err := j.codec.Append(nil, elements)
	if err != nil {
		return nil, fmt.Errorf("collective: codec of %s: %w", typeName[T](), err)
	}
	return b, nil
}

// decode returns the elements in bytes, which may lie there still.
func (j *invocation[T, In, Out]) decode(b []byte) ([]T, error) {
	elements, err := j.codec.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("collective: codec of %s: %w", typeName[T](), err)
	}
	return elements, nil
}

// like decodes elements that must be as many as others.
func (j *invocation[T, In, Out]) decodeN(b []byte, n int) ([]T, error) {
	elements, err := j.decode(b)
	if err == nil && len(elements) != n {
		err = fmt.Errorf("%w: %d elements where %d were to come: a Restore returned another number than the call was given", ErrMessage, len(elements), n)
	}
	return elements, err
}

// detailOf hashes what a signature has no field for: the names of types and operators.
func detailOf(names ...string) uint64 {
	// FNV-1a by hand, because every call does it and package hash/fnv would allocate.
	h := uint64(0xcbf29ce484222325)
	for _, name := range names {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * 0x100000001b3
		}
		h = (h ^ '\n') * 0x100000001b3
	}
	return h
}
