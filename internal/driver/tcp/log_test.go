package tcp

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A process that connects again and again in vain is worth one line for each cause, and one that
// says nothing is worth none.
func TestRefusedConnectionsAreLoggedOnce(t *testing.T) {
	var log testutil.LogBuffer
	m := alone(t, Config{Logger: log.Logger()})
	for i := range 5 {
		c, err := net.Dial("tcp", m.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		eventually(t, "closed", func() bool { return m.Stats().Refused == uint64(i+1) })
	}
	if n := len(log.Lines("connection refused")); n != 0 {
		t.Errorf("%d lines of processes that have said nothing", n)
	}
	for i := range 5 {
		expectClosed(t, dialRaw(t, m, []byte("GET / HTTP/1.1\r\n\r\n")))
		eventually(t, "refused", func() bool { return m.Stats().Refused == uint64(i+6) })
	}
	if n := len(log.Lines("connection refused")); n != 1 {
		t.Errorf("%d lines", n)
	}
	_ = dialRaw(t, m, []byte{0}).Close()
	eventually(t, "another cause", func() bool { return len(log.Lines("connection refused")) == 2 })
	if len(log.Lines("repeated=4")) != 1 {
		t.Error("how often the first cause came is not told")
	}
}

// A peer that cannot be dialed is worth a line for each cause, also if it is tried
// often, and another one after it was connected.
func TestFailedDialsAreLoggedOnce(t *testing.T) {
	var log testutil.LogBuffer
	members := startGroup(t, 2, Config{Logger: log.Logger(), BackoffMin: time.Millisecond, BackoffMax: time.Millisecond})
	for round := 1; round <= 2; round++ {
		eventually(t, "a frame", func() bool {
			_ = members[0].Send(1, []byte("hello"))
			return len(members[1].received(0)) > 0
		})
		members[1].kill()
		before := members[0].Stats().DialsFailed
		eventually(t, "five failed dials", func() bool {
			_ = members[0].Send(1, []byte("hello"))
			return members[0].Stats().DialsFailed >= before+5
		})
		if n := len(log.Lines("cannot connect")); n != round {
			t.Fatalf("round %d: %d lines", round, n)
		}
		members[1] = restart(t, members[1], uint64(100*round))
	}
}

// A former process that still tries is worth a line: an operator has started two.
func TestFormerProcessIsLogged(t *testing.T) {
	var log testutil.LogBuffer
	m := alone(t, Config{Logger: log.Logger(), Open: true})
	hello := wire.Hello{Group: "test", From: 1, To: 0, Incarnation: 7, Attempt: 1}
	dialAs(t, m, hello)
	for hello.Incarnation = 6; hello.Attempt < 5; hello.Attempt++ {
		c := dialHello(t, m, hello)
		if theirs, err := c.hello(); err != nil || theirs.Status != wire.Stale {
			t.Fatalf("%+v, %v", theirs, err)
		}
	}
	eventually(t, "line", func() bool { return len(log.Lines("incarnation 6 of this rank is over: 7 is known")) == 1 })
}

// exhausted is a listener of a process without file descriptors.
type exhausted struct{ net.Listener }

func (exhausted) Accept() (net.Conn, error) {
	return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

func TestAcceptWithoutDescriptorsIsALocalError(t *testing.T) {
	var log testutil.LogBuffer
	listeners, addresses := listen(t, 1)
	m := start(t, Config{Addresses: addresses, Listener: exhausted{listeners[0]}, Logger: log.Logger()})
	var first time.Time
	eventually(t, "two errors", func() bool {
		at, err := m.LocalError()
		if first.IsZero() {
			first = at
		}
		return errors.Is(err, syscall.EMFILE) && at.After(first)
	})
	if n := len(log.Lines("level=WARN")); n != 1 {
		t.Errorf("%d lines", n)
	}
}
