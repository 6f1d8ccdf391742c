package tcp

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// doorbell wakes the process at the other end of a socket, by a byte, as the doorbells of NVMe
// and RDMA queues wake a device.
type doorbell struct {
	raw syscall.RawConn
	// The methods send and receive, and what the latter works on. Kept here so that
	// nothing is allocated.
	send    func(fd uintptr)
	receive func(fd uintptr) bool
	n       int
	errno   syscall.Errno
}

// newDoorbell returns nil if c is not a socket.
func newDoorbell(c net.Conn) *doorbell {
	raw := syscallConn(c)
	if raw == nil {
		return nil
	}
	b := &doorbell{raw: raw}
	b.send, b.receive = sendByte, b.read
	return b
}

var oneByte [1]byte

// ring wakes the other process. It never waits: if the socket takes no byte, others are
// in it that the process has not read yet. An error ends wait, too.
func (b *doorbell) ring() { _ = b.raw.Control(b.send) }

func sendByte(fd uintptr) {
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&oneByte)), 1)
}

// wait waits until the other process rings or is gone. Only one goroutine may call it.
func (b *doorbell) wait() error {
	err := b.raw.Read(b.receive)
	switch {
	case err != nil:
		return err
	case b.errno != 0:
		return os.NewSyscallError("read", b.errno)
	case b.n == 0:
		return io.EOF
	}
	return nil
}

// read tries once. It returns false if nobody has rung.
func (b *doorbell) read(fd uintptr) bool {
	var bytes [64]byte // More than one if the process was awake when the others came.
	for {
		r, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&bytes)), uintptr(len(bytes)))
		b.n, b.errno = int(r), errno
		if errno != syscall.EINTR {
			return errno != syscall.EAGAIN
		}
	}
}
