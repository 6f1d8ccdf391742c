package tcp

import (
	"net"
	"os"
	"syscall"
	"unsafe"

	"github.com/pleach-go/pleach/wire"
)

// direct writes to a socket without ever waiting for it. Package net has no such
// call: its Write waits until everything is taken.
type direct struct {
	raw syscall.RawConn
	// try is the method writev, and the rest is what it works on. Kept here so
	// that a write does not allocate.
	try   func(fd uintptr) bool
	head  [1 << 10]byte // A frame's header, and the frame too if it fits.
	parts [4]syscall.Iovec
	used  int // Of parts.
	n     int
	errno syscall.Errno
}

// newDirect returns nil if c is not a socket.
func newDirect(c net.Conn) *direct {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	d := &direct{raw: raw}
	d.try = d.writev
	return d
}

// write writes as much as the socket takes of what waits and, if there is one, of
// a frame with its header. Calls must not overlap each other or any Write of the
// connection, which would make it wait.
func (d *direct) write(waiting []byte, f *frame) (int, error) {
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
func (d *direct) arrange(waiting []byte, f *frame) {
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

func (d *direct) part(b []byte) {
	if len(b) > 0 {
		d.parts[d.used] = syscall.Iovec{Base: &b[0]}
		d.parts[d.used].SetLen(len(b))
		d.used++
	}
}

// writev tries once. It always returns true, which says not to wait and try
// again.
func (d *direct) writev(fd uintptr) bool {
	for {
		n, _, errno := syscall.Syscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&d.parts)), uintptr(d.used))
		if errno != syscall.EINTR {
			d.n, d.errno = int(n), errno
			return true
		}
	}
}
