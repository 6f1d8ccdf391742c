//go:build unix

package detect

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// connected makes a detector with a real connection to a listening process,
// whose end it hears of as from a transport.
func connected(t *testing.T, c *testutil.Process) (*Connections, *journal) {
	t.Helper()
	address, _ := c.Wait(t, "address")
	d := NewConnections(ConnectionsConfig{})
	d.Watch(PeerList([]Peer{{Rank: 1, Address: address}}))
	j := started(t, d)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	c.Wait(t, "connections 1")
	d.Up(1, 5)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := conn.Read(make([]byte, 1))
		d.Down(1, err)
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	return d, j
}

func TestKilledProcessIsSuspected(t *testing.T) {
	c := testutil.StartProcess(t, childRole, "listen")
	_, j := connected(t, c)
	start := time.Now()
	c.Signal(syscall.SIGKILL)
	if cause := j.want(t, suspected(1, 5)); !errors.Is(cause, ErrGone) || !errors.Is(cause, syscall.ECONNREFUSED) {
		t.Errorf("cause is %v", cause)
	}
	t.Logf("suspected after %v", time.Since(start))
}

// A process that is stopped is there: its host takes connections for it.
func TestStoppedProcessIsNotSuspected(t *testing.T) {
	c := testutil.StartProcess(t, childRole, "listen")
	d, j := connected(t, c)
	c.Signal(syscall.SIGSTOP)
	for range 3 {
		d.Down(1, errors.New("nothing was acknowledged for long"))
		time.Sleep(300 * time.Millisecond)
	}
	c.Signal(syscall.SIGCONT)
	c.Wait(t, "connections 3") // It was indeed dialed.
	j.want(t)
}

func TestClosedListenerIsSuspected(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := NewConnections(ConnectionsConfig{})
	d.Watch(PeerList([]Peer{{Rank: 1, Incarnation: 5, Address: ln.Addr().String()}}))
	j := started(t, d)
	d.Down(1, errLost)
	time.Sleep(time.Second)
	j.want(t)
	_ = ln.Close()
	d.Down(1, errLost)
	j.want(t, suspected(1, 5))
}

// A host that drops what is sent to it is silent. A listener whose queue is full
// does that too, and needs no network.
func TestSilentHostIsSuspected(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := errors.Join(
		syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
		syscall.Listen(fd, 0),
	); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}).String()
	for {
		conn, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err != nil {
			break // Full.
		}
		defer func() { _ = conn.Close() }()
	}

	d := NewConnections(ConnectionsConfig{})
	d.Watch(PeerList([]Peer{{Rank: 1, Incarnation: 5, Address: address}}))
	j := started(t, d)
	start := time.Now()
	d.Down(1, errLost)
	if cause := j.want(t, suspected(1, 5)); !errors.Is(cause, ErrSilent) {
		t.Errorf("cause is %v", cause)
	}
	t.Logf("suspected after %v", time.Since(start))
}
