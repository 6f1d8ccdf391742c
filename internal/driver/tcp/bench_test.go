package tcp

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// funcHandler calls a function for every frame, and for writable.
type funcHandler struct {
	receive  func(from protocol.Rank, frame []byte)
	writable func()
}

func (h funcHandler) Receive(from protocol.Rank, frame []byte) { h.receive(from, frame) }
func (h funcHandler) Up(protocol.Rank, uint64)                 {}
func (h funcHandler) Down(protocol.Rank, error)                {}
func (h funcHandler) Writable(protocol.Rank)                   { h.writable() }

// pair starts two members with handlers that are given the transports.
func pair(b *testing.B, handlers func(t [2]*Transport) [2]funcHandler) [2]*Transport {
	b.Helper()
	listeners, addresses := listen(b, 2)
	var pair [2]*Transport
	for i := range pair {
		t, err := New(Config{Group: "bench", Rank: protocol.Rank(i), Addresses: addresses, Listener: listeners[i]})
		if err != nil {
			b.Fatal(err)
		}
		pair[i] = t
		b.Cleanup(func() { _ = t.Close() })
	}
	for i, h := range handlers(pair) {
		if err := pair[i].Start(h); err != nil {
			b.Fatal(err)
		}
	}
	return pair
}

// barePing returns a function that sends a frame to a bare net.Conn and waits
// for the echo: the least that a program of package net can do.
func barePing(b *testing.B, size int) func() {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		buf := make([]byte, wire.HeaderSize+size)
		for {
			if _, err := io.ReadFull(c, buf); err != nil {
				return
			}
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = c.Close(), l.Close() })
	buf := make([]byte, wire.HeaderSize+size)
	return func() {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPingPong measures a round trip of 64 bytes. Bare and ours take turns
// in the same run, as the machine may be busy with other work; "ratio" is ours
// to bare. Like bare, ours answers in the goroutine that reads: that is what the
// handler of a node does.
func BenchmarkPingPong(b *testing.B) {
	const size, batch = 64, 200
	bare := barePing(b, size)
	left, over := 0, make(chan struct{})
	m := pair(b, func(t [2]*Transport) (h [2]funcHandler) {
		for i := range h {
			h[i].receive = func(from protocol.Rank, frame []byte) {
				if i == 0 {
					left--
					if left == 0 {
						over <- struct{}{}
						return
					}
				}
				_ = t[i].Send(from, frame)
			}
		}
		return h
	})
	ours := func(n int) {
		left = n
		if err := m[0].Send(1, make([]byte, size)); err != nil {
			b.Fatal(err)
		}
		<-over
	}
	bare()
	ours(1)
	var bareTime, oursTime time.Duration
	b.ResetTimer()
	for range b.N/batch + 1 {
		begin := time.Now()
		for range batch {
			bare()
		}
		middle := time.Now()
		ours(batch)
		bareTime += middle.Sub(begin)
		oursTime += time.Since(middle)
	}
	n := float64((b.N/batch + 1) * batch)
	b.ReportMetric(float64(bareTime.Nanoseconds())/n, "bare-ns")
	b.ReportMetric(float64(oursTime.Nanoseconds())/n, "ours-ns")
	b.ReportMetric(float64(oursTime)/float64(bareTime), "ratio")
}

func benchmarkThroughput(b *testing.B, size int) {
	left, over, writable := b.N, make(chan struct{}), make(chan struct{}, 1)
	m := pair(b, func([2]*Transport) (h [2]funcHandler) {
		h[0].writable = func() { writable <- struct{}{} }
		h[1].receive = func(protocol.Rank, []byte) {
			left--
			if left == 0 {
				close(over)
			}
		}
		return h
	})
	frame := make([]byte, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for m[0].Send(1, frame) != nil {
			<-writable
		}
	}
	<-over
}

// BenchmarkThroughput measures one direction of one connection.
func BenchmarkThroughput(b *testing.B) {
	b.Run("64KiB", func(b *testing.B) { benchmarkThroughput(b, 64<<10) })
	b.Run("64B", func(b *testing.B) { benchmarkThroughput(b, 64) })
}

// BenchmarkConnect is the time from the first Send to the frame's arrival, with all
// of the handshake.
func BenchmarkConnect(b *testing.B) {
	ca := testutil.NewCA(b)
	for name, cfg := range map[string]Config{"plain": {}, "secret": {Secret: secret}, "tls": {TLS: ca.Config(b, ca)}} {
		b.Run(name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			cfg.Open, cfg.Listener = true, l
			cfg.Addresses = []string{l.Addr().String()}
			arrived := make(chan struct{})
			receiver, err := New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			if err := receiver.Start(funcHandler{receive: func(protocol.Rank, []byte) { arrived <- struct{}{} }}); err != nil {
				b.Fatal(err)
			}
			defer receiver.Close()
			for b.Loop() {
				b.StopTimer()
				own, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				c := cfg
				c.Rank, c.Listener = 1, own
				sender, err := New(c)
				if err != nil {
					b.Fatal(err)
				}
				if err := sender.Start(funcHandler{}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := sender.Send(0, []byte("a")); err != nil {
					b.Fatal(err)
				}
				<-arrived
				b.StopTimer()
				_ = sender.Close()
				b.StartTimer()
			}
		})
	}
}
