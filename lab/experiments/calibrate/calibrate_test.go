package calibrate

import (
	"context"
	"net"
	"testing"
	"time"
)

// Two ends in one program: numbers come out that make sense together.
func TestMeasure(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Echo(ctx, l) }()
	n, err := Measure(t.Context(), l.Addr().String())
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Spread{n.Hop, n.Overhead} {
		if s.P10 > s.Median || s.Median > s.P90 || s.P90 <= 0 {
			t.Errorf("%+v", n)
		}
	}
	if n.Latency > n.Hop.Median {
		t.Errorf("%+v", n)
	}
}

func TestMeasureNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if n, err := Measure(t.Context(), address); err == nil {
		t.Errorf("nobody is there, and takes %+v", n)
	}
}

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		latency, overhead time.Duration
		l, o              int64
	}{
		{0, 4000, 0, 1},
		{8000, 4000, 2, 1},
		{100_000, 3000, 33, 1}, // 1% off
		{6000, 4000, 3, 2},
		{1000, 3000, 1, 3},
		{4000, 0, 4000, 1}, // as if it took a nanosecond
	} {
		n := Network{Overhead: Spread{Median: c.overhead}, Latency: c.latency}
		if l, o, step := n.Steps(); int64(l) != c.l || int64(o) != c.o || step <= 0 {
			t.Errorf("L = %v, o = %v: %d and %d steps of %v, want %d and %d", c.latency, c.overhead, l, o, step, c.l, c.o)
		}
	}
}
