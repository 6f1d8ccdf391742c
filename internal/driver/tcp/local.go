package tcp

// A process that runs out of file descriptors or memory can reach no peer. That
// says nothing about its peers, so it is kept apart from their failures: a detector
// that draws conclusions from a peer's silence can ask LocalError first.

import (
	"errors"
	"sync"
	"syscall"
	"time"
)

// localPeriod is how long after the last local error the next one is a new event.
const localPeriod = 10 * time.Second

// local is the last error of this process itself.
type local struct {
	mu  sync.Mutex
	err error
	at  time.Time

	swept time.Time // When connections were last looked at, see idle.go.
}

// LocalError returns the last error at opening or accepting a connection whose cause is
// this process or its host, and when it happened: no file descriptor or memory was
// left. It returns nil if there was none.
func (t *Transport) LocalError() (at time.Time, err error) {
	t.local.mu.Lock()
	defer t.local.mu.Unlock()
	return t.local.at, t.local.err
}

// noteLocal records a local error, and closes connections that are idle. It logs the
// first of several in a row.
func (t *Transport) noteLocal(what string, err error) {
	l := &t.local
	l.mu.Lock()
	again := l.err != nil && time.Since(l.at) < localPeriod
	l.err, l.at = err, time.Now()
	l.mu.Unlock()
	if !again {
		t.cfg.Logger.Warn(what+": this process is at fault, not its peers", "cause", err)
	}
	t.sweep(0, shortageInterval)
}

// isLocal reports whether an error comes from this process or its host.
func isLocal(err error) bool {
	for _, code := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
