package tcp

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// rawConn does non-blocking I/O on a socket. Package net has no such call: its
// Write waits until the system has taken everything.
//
// A short read or write also bypasses the scheduler. In a process that was idle, a
// system call that the scheduler knows of wakes the thread that looks for calls
// that take long. That thread then competes for a processor with the receiver of
// the message.
type rawConn struct {
	raw syscall.RawConn
	// try is the method writev, and the rest is what it works on. Kept here so
	// that a write does not allocate.
	try   func(fd uintptr) bool
	head  [1 << 10]byte // A frame's header, and the frame too if it fits.
	parts [4]syscall.Iovec
	used  int // Of parts.
	n     int
	errno syscall.Errno
	in    incoming
}

// incoming is what a read works on.
type incoming struct {
	try   func(fd uintptr) bool
	poll  func(fd uintptr)
	b     []byte
	n     int
	errno syscall.Errno
	lock  *pollLock // Of the connection's reader and its pollers. nil: there are no pollers.
	// Only the reader uses the rest.
	unlocked bool   // It waits without the lock, or has waited so.
	turns    uint64 // Of pollers when it began to.
	stale    bool   // A poller had a turn meanwhile.
}

// short bounds the bytes that are moved without the scheduler: those of some ten
// microseconds, a segment of 64 KiB with its heads among them.
const short = 68 << 10

// syscallConn returns nil if c is not a socket.
func syscallConn(c net.Conn) syscall.RawConn {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// newRawConn returns nil if c is not a socket.
func newRawConn(c net.Conn) *rawConn {
	raw := syscallConn(c)
	if raw == nil {
		return nil
	}
	d := &rawConn{raw: raw}
	d.try, d.in.try, d.in.poll = d.writev, d.in.read, d.in.readNow
	return d
}

// share lets goroutines poll the socket while its reader waits.
func (d *rawConn) share(l *pollLock) { d.in.lock = l }

// write writes as much as the socket takes of the waiting bytes and of a frame with
// its header, if there is one. Calls must not overlap each other or a Write of the
// connection, which would make them wait.
func (d *rawConn) write(waiting []byte, f *frame) (int, error) {
	d.arrange(waiting, f)
	err := d.raw.Write(d.try)
	d.parts = [len(d.parts)]syscall.Iovec{} // Let go of the caller's bytes.
	switch {
	case err != nil:
		return 0, err
	case d.errno == syscall.EAGAIN:
		return 0, nil
	case d.errno != 0:
		return 0, os.NewSyscallError("writev", d.errno)
	}
	return d.n, nil
}

// arrange fills the iovecs: small parts joined into one, because a copy is cheaper
// than another iovec; large parts as they are.
func (d *rawConn) arrange(waiting []byte, f *frame) {
	d.used = 0
	d.part(waiting)
	if f == nil {
		return
	}
	header := wire.Header(f.size())
	small := append(d.head[:0], header[:]...)
	for _, b := range [...][]byte{f.head, f.body} {
		if len(b) <= cap(small)-len(small) {
			small = append(small, b...)
			continue
		}
		d.part(small)
		d.part(b)
		small = small[len(small):]
	}
	d.part(small)
}

func (d *rawConn) part(b []byte) {
	if len(b) > 0 {
		d.parts[d.used] = syscall.Iovec{Base: &b[0]}
		d.parts[d.used].SetLen(len(b))
		d.used++
	}
}

// writev tries once. It always returns true, which tells RawConn.Write not to wait
// and try again.
func (d *rawConn) writev(fd uintptr) bool {
	size := uint64(0)
	for i := range d.used {
		size += uint64(d.parts[i].Len)
	}
	for {
		d.n, d.errno = call(syscall.SYS_WRITEV, fd, unsafe.Pointer(&d.parts), d.used, size)
		if d.errno != syscall.EINTR {
			return true
		}
	}
}

// Read waits until the socket has bytes, and reads them. If the connection can be polled,
// it keeps the protocol of pollLock.
func (d *rawConn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	in := &d.in
	in.b = b
	var err error
	if in.lock != nil && in.lock.polling {
		err = d.raw.Control(in.poll) // Read would wait for the reader, which waits inside of it.
	} else if err = d.raw.Read(in.try); in.unlocked {
		// The wait has failed, or a poller was at work when it ended. The lock is taken out here,
		// because the socket is in use until raw.Read returns: a poller that closes it waits for that.
		in.lock.mu.Lock()
		in.unlocked, in.stale = false, true
	}
	in.b = nil
	switch {
	case err != nil:
		return 0, err
	case in.stale:
		in.stale = false
		return 0, errWoken
	case in.errno == syscall.EAGAIN:
		return 0, errEmpty
	case in.errno != 0:
		return 0, os.NewSyscallError("read", in.errno)
	case in.n == 0:
		return 0, io.EOF
	}
	if in.lock != nil {
		in.lock.read += uint64(in.n)
	}
	return in.n, nil
}

// read tries once. It returns false if the socket has no bytes yet. A reader that has
// pollers waits without the lock, and continues where it was unless one of them had a turn
// meanwhile, or has one now.
func (in *incoming) read(fd uintptr) bool {
	if in.unlocked {
		if !in.lock.mu.TryLock() {
			return true
		}
		in.unlocked, in.stale = false, in.lock.turns != in.turns
		if in.stale {
			return true
		}
	}
	in.readNow(fd)
	if in.errno != syscall.EAGAIN {
		return true
	}
	if in.lock != nil {
		in.unlocked, in.turns = true, in.lock.turns
		in.lock.mu.Unlock()
	}
	return false
}

// readNow tries once.
func (in *incoming) readNow(fd uintptr) {
	for {
		in.n, in.errno = call(syscall.SYS_READ, fd, unsafe.Pointer(&in.b[0]), len(in.b), uint64(len(in.b)))
		if in.errno != syscall.EINTR {
			return
		}
	}
}

// call does a system call that moves so many bytes, with the scheduler if they are
// many.
func call(trap, fd uintptr, p unsafe.Pointer, length int, bytes uint64) (n int, errno syscall.Errno) {
	var r uintptr
	if bytes <= short {
		r, _, errno = syscall.RawSyscall(trap, fd, uintptr(p), uintptr(length))
	} else {
		r, _, errno = syscall.Syscall(trap, fd, uintptr(p), uintptr(length))
	}
	return int(r), errno
}
