//go:build unix

package bench

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Reports is the end of a pipe where records come in. It is read by hand, not through package os,
// whose poller would wake this process at each record: it would take part in
// what it measures.
type Reports struct {
	fd     int
	buffer [4096 * recordSize]byte
	held   int
}

// OpenReports returns both ends of a pipe: members inherit the file.
func OpenReports() (*Reports, *os.File, error) {
	var ends [2]int
	syscall.ForkLock.RLock() // a process started now must not inherit them by chance
	err := syscall.Pipe(ends[:])
	if err == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("pipe", err)
	}
	r, w := &Reports{fd: ends[0]}, os.NewFile(uintptr(ends[1]), "report")
	if err := syscall.SetNonblock(r.fd, true); err != nil {
		return nil, nil, errors.Join(os.NewSyscallError("fcntl", err), r.Close(), w.Close())
	}
	return r, w, nil
}

// Read takes the records that are there, if any.
func (r *Reports) Read(take func(Record)) (some bool, err error) {
	n, err := syscall.Read(r.fd, r.buffer[r.held:])
	switch {
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR):
		return false, nil
	case err != nil:
		return false, os.NewSyscallError("read", err)
	case n == 0:
		return false, fmt.Errorf("bench: all processes have ended")
	}
	r.held += n
	b := r.buffer[:r.held]
	for ; len(b) >= recordSize; b = b[recordSize:] {
		take(parseRecord(b))
	}
	r.held = copy(r.buffer[:], b)
	return true, nil
}

// Close closes the pipe.
func (r *Reports) Close() error { return os.NewSyscallError("close", syscall.Close(r.fd)) }
