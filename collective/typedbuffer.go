package collective

import (
	"reflect"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// What is sent is kept, and must not be changed; what a program has given or gets
// is its own, and may be. So whatever goes from one to the other is copied, once:
// an algorithm writes drafts, and sends them from where they are.

// draft is elements that a task writes and then sends. A part that has been sent
// must not be written any more.
type typedBuffer[T any] struct {
	elements []T
	buffer   *engine.Buffer // nil: they go through a Codec, or nobody has sent anything
}

// drop says that the task does not need it any more.
func (d typedBuffer[T]) release() { engine.Payload{Buffer: d.buffer}.Release() }

// asTheyAre reports whether elements travel as they lie in memory.
func (j *invocation[T, In, Out]) isRaw() bool {
	_, ok := j.codec.(memory[T])
	return ok
}

// bytes is how many so many elements are, or 0 if nobody knows before they are
// there.
func (j *invocation[T, In, Out]) bytes(n int) int {
	if !j.isRaw() {
		return 0
	}
	return n * int(reflect.TypeFor[T]().Size())
}

// draft returns room for so many elements, with anything in it.
func (j *invocation[T, In, Out]) newBuffer(t *engine.Task, n int) typedBuffer[T] {
	if n == 0 || !j.isRaw() {
		return typedBuffer[T]{elements: make([]T, n)}
	}
	s := t.NewBuffer(j.bytes(n))
	return typedBuffer[T]{numbersOn[T](s.Bytes, n), s}
}

// draftOf returns a draft of elements.
func (j *invocation[T, In, Out]) copyToBuffer(t *engine.Task, elements []T) typedBuffer[T] {
	d := j.newBuffer(t, len(elements))
	copy(d.elements, elements)
	return d
}

// sendDraft sends some elements of a draft.
func (j *invocation[T, In, Out]) sendBuffer(t *engine.Task, to, step int, d typedBuffer[T], s span) error {
	some := d.elements[s.from:s.to]
	if d.buffer != nil {
		return t.SendPayload(to, step, engine.Payload{Bytes: bytesOf(some), Buffer: d.buffer})
	}
	b, err := j.encode(some)
	if err != nil {
		return err
	}
	return t.Send(to, step, b)
}

// sendElements sends elements that are not to be kept.
func (j *invocation[T, In, Out]) sendElements(t *engine.Task, to, step int, elements []T) error {
	if !j.isRaw() {
		return j.sendBuffer(t, to, step, typedBuffer[T]{elements: elements}, all(elements))
	}
	d := j.copyToBuffer(t, elements)
	defer d.release()
	return j.sendBuffer(t, to, step, d, all(elements))
}

// receiveElements receives so many elements. The draft they come in is the task's
// to drop, when it has read them.
func (j *invocation[T, In, Out]) receiveElements(t *engine.Task, from, step, n int) (typedBuffer[T], error) {
	p, err := t.ReceivePayload(from, step)
	if err != nil {
		return typedBuffer[T]{}, err
	}
	elements, err := j.decodeN(p.Bytes, n)
	return typedBuffer[T]{elements, p.Buffer}, err
}

// receiveInto receives elements where they belong.
func (j *invocation[T, In, Out]) receiveInto(t *engine.Task, from, step int, into []T) error {
	d, err := j.receiveElements(t, from, step, len(into))
	if err != nil {
		return err
	}
	copy(into, d.elements)
	d.release()
	return nil
}

// space returns room for a task's result: the caller's, if it has given some that is
// enough, and if the task is its own.
func (j *invocation[T, In, Out]) resultBuffer(t *engine.Task, n int) []T {
	if into, ok := any(j.into).([]T); ok && t.Own() && cap(into) >= n {
		return into[:n]
	}
	return make([]T, n)
}

// span is a range of elements.
type span struct{ from, to int }

func all[T any](elements []T) span { return span{0, len(elements)} }

// halves cuts it in two.
func (s span) halves() (low, high span) {
	middle := s.from + (s.to-s.from)/2
	return span{s.from, middle}, span{middle, s.to}
}

// pieces calls f for pieces of so many elements at most, one after the other, until
// there is an error. Their numbers count from 0; of none, there is one, empty.
func pieces(n, size int, f func(number int, s span) error) error {
	for number, at := 0, 0; at == 0 || at < n; number, at = number+1, at+size {
		if err := f(number, span{at, min(at+size, n)}); err != nil {
			return err
		}
	}
	return nil
}
