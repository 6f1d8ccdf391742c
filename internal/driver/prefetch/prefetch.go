// Package prefetch has messages that were taken from a member and wait for the program:
// taking each alone would spend more on the member's lock than on the message.
package prefetch

import (
	"sync"
	"sync/atomic"
)

// Count is how many messages of each sort are taken at a time.
const Count = 128

// Queue is a queue of messages for the program. The zero value is empty. What takes messages
// holds the lock of the member, and calls Add; the program needs only that of the queue.
type Queue[M any] struct {
	// Drained says that the member had no more: goroutines that receive wait for the next
	// step that brings a message, which takes it for them. It is set with the lock of the
	// member.
	Drained atomic.Bool

	mu       sync.Mutex
	messages []M
	yielded  int // of messages
}

// Next returns the next message.
func (q *Queue[M]) Next() (m M, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.yielded == len(q.messages) {
		return m, false
	}
	m, q.messages[q.yielded] = q.messages[q.yielded], m
	q.yielded++
	return m, true
}

// Exchange returns all messages, and keeps the memory of others, which were yielded, for the
// next ones.
func (q *Queue[M]) Exchange(yielded []M) []M {
	clear(yielded)
	q.mu.Lock()
	defer q.mu.Unlock()
	rest := q.messages[q.yielded:]
	q.messages, q.yielded = yielded[:0], 0
	return rest
}

// Fill takes messages, unless some are left, and reports whether there are any.
func (q *Queue[M]) Fill(take func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.yielded < len(q.messages) {
		return true // another goroutine has taken them
	}
	q.messages, q.yielded = q.messages[:0], 0
	take()
	return len(q.messages) > 0
}

// Extend takes messages behind those that are left, so many that there are Count at most.
func (q *Queue[M]) Extend(take func(most int)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	take(Count - len(q.messages))
}

// Keep takes messages behind those that are left, however many.
func (q *Queue[M]) Keep(take func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	take()
}

// Add adds a message. It is called by what Fill, Extend and Keep call.
func (q *Queue[M]) Add(m M) { q.messages = append(q.messages, m) }

// Empty reports whether no messages are left.
func (q *Queue[M]) Empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.yielded == len(q.messages)
}

// Drop drops what is left.
func (q *Queue[M]) Drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages, q.yielded = nil, 0
}
