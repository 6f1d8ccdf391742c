package pleach

import (
	"sync"
	"sync/atomic"
)

// bell tells any number of goroutines that something has changed.
type bell struct {
	mu   sync.Mutex
	next chan struct{}
}

// wait returns what is closed when it rings next. Who asks before looking at what
// may change misses nothing.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *bell) give() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// watching is the end of something, and why.
type ending struct {
	once sync.Once
	done chan struct{}
	err  atomic.Pointer[error]
}

func (e *ending) end(err error) {
	e.once.Do(func() {
		e.err.Store(&err)
		close(e.done)
	})
}

// cause is why it has ended; nil: it has not.
func (e *ending) cause() error {
	if err := e.err.Load(); err != nil {
		return *err
	}
	return nil
}
