package tcp

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"github.com/pleach-go/pleach/internal/wire"
)

// rawConn writes to a socket without ever waiting for it. Package net has no such
// call: its Write waits until everything is taken.
//
// And it reads and writes without telling the scheduler, as long as that is short:
// a system call that is announced wakes, in a process that was idle, a thread that
// looks for calls that take long. That thread then competes for a processor with who
// waits for the message.
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
	b     []byte
	n     int
	errno syscall.Errno
}

// short is how many bytes are moved without telling the scheduler, at most: what
// takes some ten microseconds.
const short = 64 << 10

// newRawConn returns nil if c is not a socket.
func newRawConn(c net.Conn) *rawConn {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	d := &rawConn{raw: raw}
	d.try, d.in.try = d.writev, d.in.read
	return d
}

// write writes as much as the socket takes of what waits and, if there is one, of
// a frame with its header. Calls must not overlap each other or any Write of the
// connection, which would make it wait.
func (d *rawConn) write(waiting []byte, f *frame) (int, error) {
	d.arrange(waiting, f)
	err := d.raw.Write(d.try)
	d.parts = [len(d.parts)]syscall.Iovec{} // The bytes are the caller's again.
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

// arrange says what to write: what is small in one part, because copying it is
// cheaper than what the system does for a second one; what is larger as it is.
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

// writev tries once. It always returns true, which says not to wait and try
// again.
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

// Read reads, and waits until there is something.
func (d *rawConn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	in := &d.in
	in.b = b
	err := d.raw.Read(in.try)
	in.b = nil
	switch {
	case err != nil:
		return 0, err
	case in.errno != 0:
		return 0, os.NewSyscallError("read", in.errno)
	case in.n == 0:
		return 0, io.EOF
	}
	return in.n, nil
}

// read tries once. It returns false if there is nothing yet.
func (in *incoming) read(fd uintptr) bool {
	for {
		in.n, in.errno = call(syscall.SYS_READ, fd, unsafe.Pointer(&in.b[0]), len(in.b), uint64(len(in.b)))
		if in.errno != syscall.EINTR {
			return in.errno != syscall.EAGAIN
		}
	}
}

// call calls the system to move so many bytes, and tells the scheduler if they are
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
