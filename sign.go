package pleach

import (
	"sync"
	"sync/atomic"
)

// ending is the end of something, and why.
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
