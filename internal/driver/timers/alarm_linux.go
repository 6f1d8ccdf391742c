package timers

import (
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// fine is an alarm by a timer that is a file (timerfd_create(2)). Go's runtime waits for it
// as for a connection, so it is late by some 25 µs.
type fine struct {
	file *os.File

	mu      sync.Mutex
	fd      uintptr
	stopped bool
}

const clockMonotonic = 1

// newFine returns an alarm, or nil if the process has no descriptor left for it.
func newFine(f func()) Alarm {
	fd, _, errno := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil
	}
	a := &fine{file: os.NewFile(fd, "timer"), fd: fd}
	go a.wait(f)
	return a
}

// wait calls the function each time that the timer expires.
func (a *fine) wait(f func()) {
	var expirations [8]byte
	for {
		if _, err := a.file.Read(expirations[:]); err != nil {
			return
		}
		f()
	}
}

// itimerspec is that of timerfd_settime(2).
type itimerspec struct{ interval, value syscall.Timespec }

func (a *fine) Set(d time.Duration) {
	spec := itimerspec{value: syscall.NsecToTimespec(int64(max(d, 1)))} // 0 would stop it
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stopped {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, a.fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	}
}

func (a *fine) Stop() {
	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	_ = a.file.Close() // nothing was written
}
