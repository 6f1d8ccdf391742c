package limit

import (
	"context"
	"sync"

	"github.com/pleach-go/pleach/internal/base/notify"
)

// Pool is an amount, of requests or of bytes, that sources use for a while. Its methods may be called
// by several goroutines.
type Pool struct {
	most, share int64
	freed       notify.Notifier

	mu   sync.Mutex
	used int64
	by   map[string]int64
}

// NewPool returns a pool of an amount, of which one source has at most a share at a time.
func NewPool(most, share int64) *Pool {
	return &Pool{most: most, share: share, by: make(map[string]int64)}
}

// Take takes an amount for a source, and returns what gives it back. It reports false if it is not
// available.
func (p *Pool) Take(source string, n int64) (free func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used+n > p.most || p.by[source]+n > p.share {
		return nil, false
	}
	p.used += n
	p.by[source] += n
	return sync.OnceFunc(func() { p.free(source, n) }), true
}

// Wait is Take that waits until the amount is available or ctx ends.
func (p *Pool) Wait(ctx context.Context, source string, n int64) (free func(), ok bool) {
	for {
		freed := p.freed.Wait()
		free, ok = p.Take(source, n)
		if ok || n > p.share {
			return free, ok
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// Used returns the amount that is in use.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

func (p *Pool) free(source string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	p.by[source] -= n
	if p.by[source] == 0 {
		delete(p.by, source)
	}
	p.freed.Notify()
}
