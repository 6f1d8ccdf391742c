//go:build unix

package bootstrap

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// inheritedListener takes over a socket that the launcher has opened. It closes the
// descriptor only after it has checked the socket: a variable that was inherited by
// mistake may name a descriptor of another part of the program.
func inheritedListener(fd int, want string) (net.Listener, error) {
	listener, err := listenerOf(fd)
	if err != nil {
		return nil, &VariableError{
			Name: "PLEACH_LISTEN_FD", Value: fmt.Sprint(fd), Err: err,
			Problem: "not a listening socket: it was taken over before, or pleach run did not start this process itself",
		}
	}
	if got := listener.Addr().String(); got != want {
		listener.Close()
		return nil, &VariableError{
			Name: "PLEACH_LISTEN_FD", Value: fmt.Sprint(fd),
			Problem: fmt.Sprintf("the socket listens at %s, not at %s", got, want),
		}
	}
	// While a copy is open, the system accepts connections after the listener closes.
	if err := syscall.Close(fd); err != nil {
		listener.Close()
		return nil, fmt.Errorf("bootstrap: close inherited socket %d: %w", fd, err)
	}
	return listener, nil
}

// listenerOf makes a listener from a duplicate of a descriptor.
func listenerOf(fd int) (net.Listener, error) {
	if listening, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN); err != nil {
		return nil, os.NewSyscallError("getsockopt", err)
	} else if listening == 0 {
		return nil, os.NewSyscallError("getsockopt", syscall.EINVAL)
	}
	number, err := syscall.Dup(fd)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	file := os.NewFile(uintptr(number), "inherited socket")
	defer file.Close() // FileListener duplicates it again
	return net.FileListener(file)
}
