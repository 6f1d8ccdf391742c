// Package notify wakes any number of goroutines when something has changed: a
// condition variable that can stand in a select statement.
package notify

import (
	"sync"
	"sync/atomic"
)

// Notifier broadcasts that something has changed. The zero value is ready for use.
// It may be used by several goroutines.
//
// A goroutine that waits for a condition calls Wait first, then checks the
// condition, then receives from the channel. A change between the check and the
// receive closes the channel, so no wake-up is lost.
type Notifier struct {
	waiting atomic.Bool // next is not nil; lets Notify skip the lock
	mu      sync.Mutex
	next    chan struct{} // nil if no goroutine waits
}

// Wait returns a channel that the next Notify closes.
func (n *Notifier) Wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
		n.waiting.Store(true)
	}
	return n.next
}

// Notify wakes every goroutine that waits. It does not block, and does not allocate.
func (n *Notifier) Notify() {
	if n.waiting.Load() {
		n.wake()
	}
}

func (n *Notifier) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
		n.waiting.Store(false)
	}
}

// Signal puts a signal into a channel, unless one is there already.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
