// Package queue is a first-in, first-out queue on a ring buffer, for the protocols
// that queue messages and segments: its elements can be addressed by index, and in
// the long run it does not allocate.
package queue

// Queue is a first-in, first-out queue. The zero value is empty. Push and Pop take
// amortized constant time and move no other element.
type Queue[T any] struct {
	ring  []T // its length is a power of two, or 0
	first int
	size  int
}

// Len returns the number of elements.
func (q *Queue[T]) Len() int { return q.size }

// At returns the element at index i, of 0 … Len-1, counted from the front. The
// pointer is valid until the next Push or Pop.
func (q *Queue[T]) At(i int) *T { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

// Push adds an element at the back.
func (q *Queue[T]) Push(v T) {
	if q.size == len(q.ring) {
		q.grow()
	}
	q.size++
	*q.At(q.size - 1) = v
}

// Pop removes the element at the front. The queue must not be empty.
func (q *Queue[T]) Pop() T {
	v := *q.At(0)
	q.Discard()
	return v
}

// Discard removes the element at the front. The queue must not be empty.
func (q *Queue[T]) Discard() {
	var zero T
	*q.At(0) = zero // so that the garbage collector may free what it points to
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.size--
}

// Trim gives the memory of a queue back that is empty and has had room for more than so
// many elements.
func (q *Queue[T]) Trim(most int) {
	if q.size == 0 && len(q.ring) > most {
		*q = Queue[T]{}
	}
}

func (q *Queue[T]) grow() {
	larger := make([]T, max(2, 2*len(q.ring)))
	n := copy(larger, q.ring[q.first:])
	copy(larger[n:], q.ring[:q.first])
	q.ring, q.first = larger, 0
}
