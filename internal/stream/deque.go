package stream

// deque is a queue whose elements can be looked at by their place. Taking from
// the front and adding to the back neither moves nor, in the long run, allocates.
type deque[T any] struct {
	ring  []T // a power of two, or none
	first int
	size  int
}

func (d *deque[T]) Len() int { return d.size }

// at is the element at place i, of 0 … len-1.
func (d *deque[T]) At(i int) *T { return &d.ring[(d.first+i)&(len(d.ring)-1)] }

func (d *deque[T]) Push(v T) {
	if d.size == len(d.ring) {
		d.grow()
	}
	d.size++
	*d.At(d.size - 1) = v
}

// pop takes the first element, of a deque that has one.
func (d *deque[T]) Pop() T {
	var none T
	first := d.At(0)
	v := *first
	*first = none // let go of what it points to
	d.first = (d.first + 1) & (len(d.ring) - 1)
	d.size--
	return v
}

func (d *deque[T]) grow() {
	larger := make([]T, max(8, 2*len(d.ring)))
	n := copy(larger, d.ring[d.first:])
	copy(larger[n:], d.ring[:d.first])
	d.ring, d.first = larger, 0
}
