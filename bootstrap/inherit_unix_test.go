//go:build unix

package bootstrap

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// inheritable returns the number of a socket that listens, and its address.
func inheritable(t *testing.T) (int, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fd, l.Addr().String()
}

// After the listener closes, peers are refused: no copy stays open.
func TestInheritedListener(t *testing.T) {
	fd, address := inheritable(t)
	l, err := Assignment{Size: 1, Addresses: []string{address}, listenFD: fd}.Listener()
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	l.Close()
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("still listens")
	}
}

// What is not the socket that was promised stays as it is.
func TestInheritedByMistake(t *testing.T) {
	refuse := func(fd int, want string) {
		t.Helper()
		_, err := Assignment{Size: 1, Addresses: []string{"127.0.0.1:9"}, listenFD: fd}.Listener()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	refuse(int(file.Fd()), "not a listening socket")
	if _, err := file.WriteString("x"); err != nil {
		t.Error(err)
	}
	fd, _ := inheritable(t)
	refuse(fd, "not at 127.0.0.1:9")
	if err := syscall.Close(fd); err != nil {
		t.Error(err)
	}
	refuse(1<<20, "PLEACH_LISTEN_FD=1048576: not a listening socket")
}
