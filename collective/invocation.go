package collective

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// invocation is a call with its types, which the engine does not know. T is the type of
// the elements; In and Out are []T, [][]T or map[int][]T.
type invocation[T, In, Out any] struct {
	in       In
	codec    Codec[T]
	restore  func(context.Context, int) (In, error)
	takeover func(int, Out)
	restored sync.Map      // by task: its *restoredInput[In]
	into     Out           // memory for the result
	dead     int           // deaths that a corrected call tolerates
	within   time.Duration // deadline of an Agree or a Shrink
	out      Out           // result of this process's own task
}

// newInvocation checks a call's options, and completes its signature.
func newInvocation[T, In, Out any](s *engine.Signature, in In, list []Option) (*invocation[T, In, Out], error) {
	var v struct { // allocated together
		invocation[T, In, Out]
		options
	}
	v.in = in
	v.take(list)
	return &v.invocation, v.init(s, &v.options)
}

// init is newInvocation for one that exists.
func (v *invocation[T, In, Out]) init(s *engine.Signature, o *options) error {
	var ok bool
	v.restore, ok = o.restore.(func(context.Context, int) (In, error))
	if !ok && o.restore != nil {
		return wrongType[func(context.Context, int) (In, error)]("Restore", o.restore)
	}
	v.takeover, ok = o.takeover.(func(int, Out))
	if !ok && o.takeover != nil {
		return wrongType[func(int, Out)]("Takeover", o.takeover)
	}
	v.into, ok = o.into.(Out)
	if !ok && o.into != nil {
		return wrongType[Out]("Into", o.into)
	}
	if o.mode == engine.Corrected && (o.dead < 0 || s.Kind != engine.Reduce && s.Kind != engine.Allreduce) {
		return wrongArgument("Corrected(%d) of %v: only Reduce and Allreduce have it, for 0 dead or more", o.dead, s.Kind)
	}
	if o.mutual && s.Kind != engine.Exchange {
		return wrongArgument("Mutual is for Exchange, not for %v", s.Kind)
	}
	if o.within != 0 && (o.within < 0 || s.Kind != engine.Agree && s.Kind != engine.Shrink) {
		return wrongArgument(
			"Within(%v) of %v: only Agree and Shrink have it, for a time above 0; pleach.Job.ProgressTimeout is for all calls",
			o.within, s.Kind)
	}
	s.Mode, v.dead, v.within = o.mode, o.dead, o.within
	s.Detail += uint64(o.dead)
	switch element := elementOf[T](); {
	case o.codec != nil:
		v.codec, ok = o.codec.(Codec[T])
		if !ok {
			return wrongType[Codec[T]]("WithCodec", o.codec)
		}
	case element != 0:
		s.Element, v.codec = element, memory[T]{}
	default:
		v.codec = gobs[T]{}
	}
	return nil
}

// typeName identifies a type in a signature.
func typeName[T any]() string { return reflect.TypeFor[T]().String() }

// input returns a task's input: the caller's, or what Restore returns.
func (v *invocation[T, In, Out]) input(t *engine.Task) (in In, err error) {
	if t.Own() {
		return v.in, nil
	}
	in, err = v.restoredInput(t)
	if err != nil {
		return in, &RestoreError{Task: t.ID, Call: t.Call(), Err: err}
	}
	return in, nil
}

// restoredInput is what Restore has returned for a task. The parts of a call that is made
// in parts need it at the same time.
type restoredInput[In any] struct {
	turn chan struct{} // semaphore of the part that asks, because Restore may take long
	have bool
	in   In
}

// restoredInput returns what Restore returns. It is asked once for each task, also by a
// call that is made in parts, unless it returns an error.
func (v *invocation[T, In, Out]) restoredInput(t *engine.Task) (in In, err error) {
	if v.restore == nil {
		return in, ErrNoRestore
	}
	entry, _ := v.restored.LoadOrStore(t.ID, &restoredInput[In]{turn: make(chan struct{}, 1)})
	r := entry.(*restoredInput[In])
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-t.Context().Done():
		return in, t.Context().Err()
	}
	if r.have {
		return r.in, nil
	}
	in, err = v.restore(t.Context(), t.ID)
	if err == nil {
		r.have, r.in = true, in
	}
	return in, err
}

// inputElements returns a task's input, which must not be modified.
func (v *invocation[T, In, Out]) inputElements(t *engine.Task) ([]T, error) {
	in, err := v.input(t)
	if err != nil {
		return nil, err
	}
	elements := any(in).([]T)
	if n := t.Signature().Length; n >= 0 && int64(len(elements)) != n {
		return nil, &RestoreError{Task: t.ID, Call: t.Call(), Err: &lengthError{len(elements), int(n)}}
	}
	return elements, nil
}

// inputCopy returns a copy of a task's input.
func (v *invocation[T, In, Out]) inputCopy(t *engine.Task) ([]T, error) {
	in, err := v.inputElements(t)
	return append(make([]T, 0, len(in)), in...), err
}

// inputParts returns a task's input, which must not be modified.
func (v *invocation[T, In, Out]) inputParts(t *engine.Task) ([][]T, error) {
	in, err := v.input(t)
	if err != nil {
		return nil, err
	}
	parts := any(in).([][]T)
	if len(parts) != t.N {
		return nil, &RestoreError{Task: t.ID, Call: t.Call(), Err: fmt.Errorf("it has %d parts for %d tasks",
			len(parts), t.N)}
	}
	return parts, nil
}

// deliver hands out a task's result.
func (v *invocation[T, In, Out]) deliver(t *engine.Task, out Out) {
	if t.Own() {
		v.out = out
		return
	}
	if v.takeover != nil {
		v.takeover(t.ID, out)
	}
}

// deliverAtRoot hands out the root's result. If this process has taken over the root's
// task, its own call returns the result, too.
func (v *invocation[T, In, Out]) deliverAtRoot(t *engine.Task, out Out) {
	if !t.Own() {
		t.UnlessReturned(func() { v.out = out })
	}
	v.deliver(t, out)
}

// result is what a call returns: nothing if it has failed.
func result[Out any](out Out, err error) (Out, error) {
	if err != nil {
		var none Out
		return none, err
	}
	return out, nil
}

// checkRoot returns an error if root is not a task.
func (c Comm) checkRoot(root int) error {
	if root < 0 || root >= c.Size() {
		return wrongArgument("root %d: choose 0 to %d", root, c.Size()-1)
	}
	return nil
}

// checkParts returns an error unless there is one part for each task.
func (c Comm) checkParts(parts int) error {
	if parts != c.Size() {
		return wrongArgument("%d parts for %d tasks", parts, c.Size())
	}
	return nil
}

// encode encodes elements into new memory.
func (v *invocation[T, In, Out]) encode(elements []T) ([]byte, error) {
	b, err := v.codec.Append(nil, elements)
	if err != nil {
		return nil, fmt.Errorf("collective: codec of %s: %w", typeName[T](), err)
	}
	return b, nil
}

// decode returns the elements in b. Numbers stay where they are in b.
func (v *invocation[T, In, Out]) decode(b []byte) ([]T, error) {
	elements, err := v.codec.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("collective: codec of %s: %w", typeName[T](), err)
	}
	return elements, nil
}

// decodeN is decode for n elements.
func (v *invocation[T, In, Out]) decodeN(b []byte, n int) ([]T, error) {
	elements, err := v.decode(b)
	if err == nil && len(elements) != n {
		err = fmt.Errorf("%w: %d elements where %d were to come: a Restore returned another number than the call was given",
			engine.ErrMessage, len(elements), n)
	}
	return elements, err
}
