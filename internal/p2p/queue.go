package p2p

// queue is first in, first out. It uses its memory again, so that a courier whose
// queues are mostly short allocates nothing.
type queue[T any] struct {
	items []T
	first int
}

func (q *queue[T]) Len() int    { return len(q.items) - q.first }
func (q *queue[T]) At(i int) *T { return &q.items[q.first+i] }

func (q *queue[T]) Push(item T) {
	if len(q.items) == cap(q.items) && q.first >= len(q.items)/2+1 {
		n := copy(q.items, q.items[q.first:])
		clear(q.items[n:])
		q.items, q.first = q.items[:n], 0
	}
	q.items = append(q.items, item)
}

// pop takes the first one off.
func (q *queue[T]) Pop() (item T) {
	item, q.items[q.first] = q.items[q.first], item
	if q.first++; q.first == len(q.items) {
		q.items, q.first = q.items[:0], 0
	}
	return item
}
