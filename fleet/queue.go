package fleet

import (
	"context"
	"iter"
	"sync"

	fifo "github.com/pleach-go/pleach/internal/base/queue"
)

// queue has what waits for goroutines. Its producers wait while it is longer than its
// bound, if they call room.
type queue[T any] struct {
	life  context.Context // what waits when it ends is still taken
	limit int
	size  func(T) int
	less  chan struct{} // there may be room

	mu    sync.Mutex // guards the rest
	news  sync.Cond  // there may be an item, or the end
	items fifo.Queue[T]
	bytes int
}

func newQueue[T any](life context.Context, limit int, size func(T) int) *queue[T] {
	q := &queue[T]{life: life, limit: limit, size: size, less: make(chan struct{}, 1)}
	q.news.L = &q.mu
	return q
}

// maxIdle is of how many items an empty queue keeps the memory.
const maxIdle = 4096

// add adds items. It does not wait.
func (q *queue[T]) add(items ...T) {
	if len(items) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range items {
		q.items.Push(items[i])
		q.bytes += q.size(items[i])
		q.news.Signal()
	}
}

// all takes the items, each as soon as it is there, until ctx ends or, when none is left,
// the life of the queue. If several goroutines call it, each item goes to one of them.
func (q *queue[T]) all(ctx context.Context) iter.Seq[T] {
	return func(yield func(T) bool) {
		defer context.AfterFunc(ctx, q.wake)()
		defer context.AfterFunc(q.life, q.wake)()
		for item, ok := q.next(ctx); ok && yield(item); item, ok = q.next(ctx) {
			continue
		}
	}
}

// more takes the first item, if there is one now and it passes a test.
func (q *queue[T]) more(test func(T) bool) (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.items.Len() == 0 || !test(*q.items.At(0)) {
		return item, false
	}
	return q.take(), true
}

// wake wakes those who wait for an item.
func (q *queue[T]) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.news.Broadcast()
}

// next takes the first item, as soon as there is one. It reports false at the end.
func (q *queue[T]) next(ctx context.Context) (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.items.Len() == 0 && ctx.Err() == nil && q.life.Err() == nil {
		q.news.Wait()
	}
	if q.items.Len() == 0 || ctx.Err() != nil {
		q.news.Signal() // it may have been for another goroutine
		return item, false
	}
	return q.take(), true
}

// take takes the first item. The caller holds the lock.
func (q *queue[T]) take() (item T) {
	item = q.items.Pop()
	q.items.Trim(maxIdle)
	q.bytes -= q.size(item)
	signal(q.less)
	return item
}

// full reports whether the queue is too long.
func (q *queue[T]) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes > q.limit
}

// room waits until the queue is not too long.
func (q *queue[T]) room() {
	for q.full() {
		select {
		case <-q.less:
		case <-q.life.Done():
			return
		}
	}
	signal(q.less) // another producer may wait
}

// signal wakes the receiver of a channel, unless a signal is pending.
func signal(sign chan<- struct{}) {
	select {
	case sign <- struct{}{}:
	default:
	}
}
