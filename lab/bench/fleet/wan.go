package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// wan is the network between zones. Each zone has a loopback host of its own, by which
// wan knows it. Connections between two of them go through a relay that delays and counts
// bytes. While a zone is cut off, they stop, and no new ones are made.
type wan struct {
	delay time.Duration
	bytes atomic.Int64

	mu      sync.Mutex
	cut     map[string]bool
	changed chan struct{} // closed when cut has changed
}

func newWAN(delay time.Duration) *wan {
	return &wan{delay: delay, cut: make(map[string]bool), changed: make(chan struct{})}
}

// host is the loopback host of a zone.
func host(zone int) string { return fmt.Sprintf("127.0.%d.1", zone+1) }

// setCut cuts a zone's host off, or heals it.
func (w *wan) setCut(host string, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[host] = cut
	close(w.changed)
	w.changed = make(chan struct{})
}

// passage waits until two hosts are connected, or done is closed.
func (w *wan) passage(a, b string, done <-chan struct{}) bool {
	for {
		w.mu.Lock()
		blocked, changed := w.cut[a] || w.cut[b], w.changed
		w.mu.Unlock()
		if !blocked {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

// dial returns the dialer of processes at a host.
func (w *wan) dial(from string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to, _, err := net.SplitHostPort(address)
		if err != nil || to == from {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		if !w.passage(from, to, ctx.Done()) {
			return nil, ctx.Err()
		}
		select {
		case <-time.After(2 * w.delay): // for the handshake of TCP
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		far, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		near, relayed := net.Pipe()
		go w.relay(relayed, far, from, to)
		return near, nil
	}
}

// relay passes bytes on in both directions until both connections are closed.
func (w *wan) relay(a, b net.Conn, from, to string) {
	var passing sync.WaitGroup
	done := make(chan struct{})
	var once sync.Once
	finish := func() {
		once.Do(func() {
			close(done)
			_ = a.Close()
			_ = b.Close()
		})
	}
	passing.Go(func() { defer finish(); w.pass(a, b, from, to, done) })
	passing.Go(func() { defer finish(); w.pass(b, a, from, to, done) })
	passing.Wait()
}

type chunk struct {
	data []byte
	due  time.Time
}

// chunks bounds what is on its way in one direction.
const chunks = 4096

// pass passes the bytes of one direction on, each after the delay, and then their end.
func (w *wan) pass(in, out net.Conn, from, to string, done <-chan struct{}) {
	waiting := make(chan chunk, chunks)
	go func() {
		defer close(waiting)
		buffer := make([]byte, 16<<10)
		for {
			n, err := in.Read(buffer)
			if n > 0 {
				w.bytes.Add(int64(n))
				select {
				case waiting <- chunk{append([]byte(nil), buffer[:n]...), time.Now().Add(w.delay)}:
				case <-done:
					return
				}
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					time.Sleep(w.delay)
				}
				return
			}
		}
	}()
	for c := range waiting {
		time.Sleep(time.Until(c.due))
		if !w.passage(from, to, done) {
			return
		}
		if _, err := out.Write(c.data); err != nil {
			return
		}
	}
}
