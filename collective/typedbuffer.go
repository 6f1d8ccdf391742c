package collective

import (
	"reflect"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// A message that is sent is logged and must not change. A call's input and result belong
// to the program and may. So data is copied once between the two: an algorithm writes
// typed buffers, and sends them without another copy.

// typedBuffer holds elements that a task writes and then sends. A part that has been sent
// must not be written any more.
type typedBuffer[T any] struct {
	elements []T
	buffer   *engine.Buffer // nil: the elements need a Codec, or lie in other memory
}

// release drops the task's reference.
func (b typedBuffer[T]) release() { engine.Payload{Buffer: b.buffer}.Release() }

// isRaw reports whether elements are sent as they lie in memory.
func (v *invocation[T, In, Out]) isRaw() bool {
	_, ok := v.codec.(memory[T])
	return ok
}

// bytes returns the size of n elements, or 0 if it is unknown before they are encoded.
func (v *invocation[T, In, Out]) bytes(n int) int {
	if !v.isRaw() {
		return 0
	}
	return n * int(reflect.TypeFor[T]().Size())
}

// newBuffer returns a buffer for n elements, with arbitrary content.
func (v *invocation[T, In, Out]) newBuffer(t *engine.Task, n int) typedBuffer[T] {
	if n == 0 || !v.isRaw() {
		return typedBuffer[T]{elements: make([]T, n)}
	}
	b := t.NewBuffer(v.bytes(n))
	return typedBuffer[T]{numbersOn[T](b.Bytes, n), b}
}

// copyToBuffer returns a buffer with a copy of elements.
func (v *invocation[T, In, Out]) copyToBuffer(t *engine.Task, elements []T) typedBuffer[T] {
	b := v.newBuffer(t, len(elements))
	copy(b.elements, elements)
	return b
}

// sendBuffer sends some elements of a buffer.
func (v *invocation[T, In, Out]) sendBuffer(t *engine.Task, to, step int, b typedBuffer[T], s span) error {
	some := b.elements[s.from:s.to]
	if b.buffer != nil {
		return t.SendPayload(to, step, engine.Payload{Bytes: bytesOf(some), Buffer: b.buffer})
	}
	encoded, err := v.encode(some)
	if err != nil {
		return err
	}
	return t.Send(to, step, encoded)
}

// sendElements sends a copy of elements.
func (v *invocation[T, In, Out]) sendElements(t *engine.Task, to, step int, elements []T) error {
	if !v.isRaw() {
		return v.sendBuffer(t, to, step, typedBuffer[T]{elements: elements}, all(elements))
	}
	b := v.copyToBuffer(t, elements)
	defer b.release()
	return v.sendBuffer(t, to, step, b, all(elements))
}

// receiveElements receives n elements. The task releases the buffer when it has read them.
func (v *invocation[T, In, Out]) receiveElements(t *engine.Task, from, step, n int) (typedBuffer[T], error) {
	p, err := t.ReceivePayload(from, step)
	if err != nil {
		return typedBuffer[T]{}, err
	}
	elements, err := v.decodeN(p.Bytes, n)
	return typedBuffer[T]{elements, p.Buffer}, err
}

// receiveInto receives elements into memory of the task's.
func (v *invocation[T, In, Out]) receiveInto(t *engine.Task, from, step int, into []T) error {
	b, err := v.receiveElements(t, from, step, len(into))
	if err != nil {
		return err
	}
	copy(into, b.elements)
	b.release()
	return nil
}

// resultBuffer returns memory for a task's result: what the caller has passed with Into,
// if the task is its own and the memory suffices.
func (v *invocation[T, In, Out]) resultBuffer(t *engine.Task, n int) []T {
	if into, ok := any(v.into).([]T); ok && t.Own() && cap(into) >= n {
		return into[:n]
	}
	return make([]T, n)
}

// span is a range of elements.
type span struct{ from, to int }

func all[T any](elements []T) span { return span{0, len(elements)} }

// halves cuts a span in two.
func (s span) halves() (low, high span) {
	middle := s.from + (s.to-s.from)/2
	return span{s.from, middle}, span{middle, s.to}
}

// segments calls f for segments of up to size elements, in order, until it returns an
// error. They are numbered from 0. Of no elements there is one segment, which is empty.
func segments(n, size int, f func(number int, s span) error) error {
	for number, at := 0, 0; at == 0 || at < n; number, at = number+1, at+size {
		if err := f(number, span{at, min(at+size, n)}); err != nil {
			return err
		}
	}
	return nil
}
