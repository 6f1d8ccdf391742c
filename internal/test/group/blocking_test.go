package group_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Every call that may wait obeys its context, and Close takes at most a second,
// whatever peers do.

// badPeers are at the second of two addresses, and behave badly there.
var badPeers = map[string]func(t *testing.T, addresses []string){
	"does not read":        doesNotRead,
	"says nothing":         func(t *testing.T, addresses []string) { accept(t, addresses[1], func(net.Conn) {}) },
	"does not answer":      doesNotAnswer,
	"is a stopped process": isStopped,
}

// doesNotRead is let in, and takes nothing then.
func doesNotRead(t *testing.T, addresses []string) {
	t.Helper()
	accept(t, addresses[1], func(c net.Conn) {
		if _, err := wire.NewReader(c, wire.MaxHelloFrame).Next(); err != nil {
			return // yielded up already
		}
		hello := wire.Hello{Group: "cluster", Size: 2, From: 1, Incarnation: 1, Attempt: 1, Status: wire.Accepted}
		_, _ = c.Write(wire.AppendFrame(nil, wire.AppendHello(nil, &hello)))
	})
}

// accept takes connections and keeps them open until the test is over.
func accept(t *testing.T, address string, then func(net.Conn)) {
	t.Helper()
	l := listen(t, address)
	var over sync.WaitGroup
	over.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			then(c)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		over.Wait()
	})
}

func listen(t *testing.T, address string) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.(*net.TCPListener)
}

// doesNotAnswer lets the system drop what asks for a connection, as a host that is
// gone does: the queue of those not accepted is full.
func doesNotAnswer(t *testing.T, addresses []string) {
	t.Helper()
	raw, err := listen(t, addresses[1]).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { _ = syscall.Listen(int(fd), 0) }); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		c, err := net.DialTimeout("tcp", addresses[1], 100*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Skip("this system takes connections although nobody accepts them")
}

// isStopped is a member in a process of its own, stopped as soon as it has got
// something.
func isStopped(t *testing.T, addresses []string) {
	t.Helper()
	c := &cluster{t: t, config: func(int) memberConfig { return memberConfig{Static: true} }}
	p := c.start(1, places{addresses: addresses, command: func(int) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = os.Environ()
		return cmd
	}})
	var stopped sync.WaitGroup
	stopped.Go(func() {
		testutil.Within(time.Minute, func() bool { return p.has(0) > 0 || t.Context().Err() != nil })
		_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	})
	t.Cleanup(stopped.Wait)
}

// beside returns a group of two whose other member behaves badly.
func beside(t *testing.T, bad func(t *testing.T, addresses []string)) *pleach.Group {
	t.Helper()
	addresses := testutil.FreeAddresses(t, 2)
	bad(t, addresses)
	return start(t, pleach.Config{Static: true, Group: "cluster", Addresses: addresses})
}

func TestAbortIsQuickWhateverPeersDo(t *testing.T) {
	endIsQuick(t, (*pleach.Group).Abort, time.Second)
}

func TestCloseIsQuickWhateverPeersDo(t *testing.T) {
	endIsQuick(t, (*pleach.Group).Close, 2*time.Second)
}

// endIsQuick ends groups while they broadcast to a member that behaves badly.
func endIsQuick(t *testing.T, end func(*pleach.Group) error, bound time.Duration) {
	t.Helper()
	for name, bad := range badPeers {
		t.Run(name, func(t *testing.T) {
			g := beside(t, bad)
			var calls sync.WaitGroup
			calls.Go(func() {
				var err error
				for i := 0; err == nil; i++ {
					err = g.Broadcast(t.Context(), numbered(0, i, 64<<10))
				}
				if !errors.Is(err, pleach.ErrClosed) {
					t.Errorf("broadcast: %v", err)
				}
			})
			calls.Go(func() {
				for range g.Messages(t.Context()) {
					t.Error("a message")
				}
			})
			time.Sleep(700 * time.Millisecond) // until queues are full, or nearly

			began := time.Now()
			if err := end(g); err != nil {
				t.Error(err)
			}
			calls.Wait()
			testutil.Took(t, "the end", time.Since(began), bound)
		})
	}
}

// A broadcast that has to wait, for a peer or for another broadcast, ends with its
// context.
func TestBroadcastObeysItsContextBesideBadPeers(t *testing.T) {
	for _, name := range []string{"does not read", "is a stopped process"} {
		t.Run(name, func(t *testing.T) {
			g := beside(t, badPeers[name])
			var calls sync.WaitGroup
			for range 2 {
				calls.Go(func() {
					var err error
					for tried := time.Now(); err == nil && time.Since(tried) < 20*time.Second; {
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
						began := time.Now()
						err = g.Broadcast(ctx, numbered(0, 0, 64<<10))
						cancel()
						testutil.Took(t, "Broadcast", time.Since(began), time.Second)
					}
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("error %v", err)
					}
				})
			}
			calls.Wait()
		})
	}
}

func TestMessagesObeyTheirContext(t *testing.T) {
	groups, _ := joinMem(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	began := time.Now()
	for range groups[0].Messages(ctx) {
		t.Error("a message")
	}
	testutil.Took(t, "Messages", time.Since(began), time.Second)
	if ctx.Err() == nil {
		t.Error("Messages ended before its context")
	}
}

func TestJoinObeysItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	addresses := testutil.FreeAddresses(t, 2)
	if _, err := pleach.Start(ctx, pleach.Config{Addresses: addresses}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	listen(t, addresses[0]) // nobody listens there
}
