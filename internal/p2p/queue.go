package p2p

// queue is a FIFO queue. It reuses its memory, so that an endpoint whose queues are
// mostly short allocates nothing.
type queue[T any] struct {
	items []T
	first int
}

func (q *queue[T]) len() int    { return len(q.items) - q.first }
func (q *queue[T]) at(i int) *T { return &q.items[q.first+i] }

func (q *queue[T]) push(item T) {
	if len(q.items) == cap(q.items) && q.first >= len(q.items)/2+1 {
		n := copy(q.items, q.items[q.first:])
		clear(q.items[n:])
		q.items, q.first = q.items[:n], 0
	}
	q.items = append(q.items, item)
}

// pop removes the first item.
func (q *queue[T]) pop() (item T) {
	item, q.items[q.first] = q.items[q.first], item
	if q.first++; q.first == len(q.items) {
		q.items, q.first = q.items[:0], 0
	}
	return item
}
