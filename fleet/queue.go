package fleet

import (
	"context"
	"sync"
)

// queue has what waits for a goroutine. Its producers wait while it is longer than its
// bound, if they call room.
type queue[T any] struct {
	mu     sync.Mutex
	items  []T
	bytes  int
	limit  int
	size   func(T) int
	news   chan struct{} // there may be an item
	less   chan struct{} // there may be room
	closed <-chan struct{}
}

func newQueue[T any](limit int, closed <-chan struct{}, size func(T) int) *queue[T] {
	return &queue[T]{limit: limit, size: size, closed: closed, news: make(chan struct{}, 1), less: make(chan struct{}, 1)}
}

// add adds an item. It does not wait.
func (q *queue[T]) add(item T) {
	q.mu.Lock()
	q.items = append(q.items, item)
	q.bytes += q.size(item)
	q.mu.Unlock()
	give(q.news)
}

// next returns the first item, as soon as there is one. It reports false at the end.
func (q *queue[T]) next(ctx context.Context) (item T, ok bool) {
	for {
		q.mu.Lock()
		if len(q.items) > 0 {
			item = q.items[0]
			var none T
			q.items[0] = none
			q.items = q.items[1:]
			q.bytes -= q.size(item)
			more := len(q.items) > 0
			q.mu.Unlock()
			if more {
				give(q.news)
			}
			give(q.less)
			return item, true
		}
		q.mu.Unlock()
		select {
		case <-q.news:
		case <-ctx.Done():
			return item, false
		case <-q.closed:
			return item, false
		}
	}
}

// full reports whether the queue is too long.
func (q *queue[T]) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes > q.limit
}

// room waits until the queue is not too long.
func (q *queue[T]) room() {
	for {
		if !q.full() {
			give(q.less) // another producer may wait
			return
		}
		select {
		case <-q.less:
		case <-q.closed:
			return
		}
	}
}

// give gives a sign, unless one is there already.
func give(sign chan<- struct{}) {
	select {
	case sign <- struct{}{}:
	default:
	}
}
