package limit

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A source has at most its share of a pool, whatever it asks for, and the rest is for others.
func TestPool(t *testing.T) {
	p := NewPool(4, 3)
	var frees []func()
	for range 3 {
		free, ok := p.Take("a", 1)
		if !ok {
			t.Fatal("not available")
		}
		frees = append(frees, free)
	}
	if _, ok := p.Take("a", 1); ok {
		t.Error("more than a share")
	}
	free, ok := p.Take("b", 1)
	if !ok {
		t.Fatal("another source has nothing")
	}
	if _, ok := p.Take("c", 1); ok {
		t.Error("more than there is")
	}
	free()
	free()
	for _, free := range frees {
		free()
	}
	if p.Used() != 0 || len(p.by) != 0 {
		t.Errorf("%d of %v are in use", p.Used(), p.by)
	}
}

// Wait returns when there is room, when its context ends, and at once if there is never room.
func TestPoolWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(10, 8)
		free, _ := p.Take("a", 8)
		time.AfterFunc(time.Second, free)
		began := time.Now()
		again, ok := p.Wait(t.Context(), "a", 1)
		if !ok || time.Since(began) != time.Second {
			t.Errorf("%v after %v", ok, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, ok := p.Wait(ctx, "a", 8); ok || time.Since(began) != time.Minute+time.Second {
			t.Errorf("%v after %v", ok, time.Since(began))
		}
		if _, ok := p.Wait(t.Context(), "b", 9); ok {
			t.Error("more than a share")
		}
		again()
	})
}

// listen returns a listener of Unix connections with room for most, and what dials it.
func listen(t *testing.T, most int) (*Listener, func() net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	raw, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(raw, most, []byte("no room\n"), func() {})
	t.Cleanup(func() { _ = l.Close() })
	return l, func() net.Conn {
		t.Helper()
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// A full listener closes the connection that has waited longest without a request, and refuses new
// ones if all have requests.
func TestListenerIsBounded(t *testing.T) {
	l, dial := listen(t, 4) // 2 of one source
	var clients []net.Conn
	var conns []*Conn
	next := func() *Conn {
		t.Helper()
		clients = append(clients, dial())
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c.(*Conn))
		return c.(*Conn)
	}
	done := next().Serve()
	next()
	next()
	if _, err := clients[1].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the oldest connection without a request: %v", err)
	}
	conns[2].Serve()
	clients = append(clients, dial())
	go func() { _, _ = l.Accept() }()
	if line, _ := bufio.NewReader(clients[3]).ReadString('\n'); line != "no room\n" {
		t.Errorf("a full listener says %q", line)
	}
	done()
	_ = conns[0].Close()
	_ = conns[1].Close()
	_ = conns[2].Close()
	if n := l.Open(); n != 0 || len(l.open) != 0 {
		t.Errorf("%d connections: %v", n, l.open)
	}
}

// A source that fills the listener makes room for another one.
func TestLargestSourceMakesRoom(t *testing.T) {
	l := NewListener(nil, 4, nil, func() {})
	enter := func(source string) (*Conn, *Conn, bool) {
		c := &Conn{source: source, listener: l}
		evicted, ok := l.enter(c)
		return c, evicted, ok
	}
	first, _, _ := enter("a")
	enter("a")
	enter("b")
	enter("c")
	if _, evicted, ok := enter("d"); !ok || evicted != first {
		t.Errorf("%v, %v", evicted, ok)
	}
}

// The user and the groups of a process at a Unix socket are known on Linux.
func TestPeer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell")
	}
	l, dial := listen(t, 4)
	dial()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if p := c.(*Conn).Peer; !p.Known || p.UID != os.Geteuid() || !slices.Contains(p.Groups, os.Getegid()) {
		t.Errorf("%+v", p)
	}
}
