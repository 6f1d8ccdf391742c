package loggp

import (
	"testing"
	"time"
)

// The textbook's formulas, where they are exact.
func TestFlatFormulas(t *testing.T) {
	l := Link{Latency: 2 * time.Microsecond, Overhead: time.Microsecond, Bandwidth: 1e9} // a byte in 1 ns
	m := Model{Network{l, l}, Even(8, 1)}
	const n = 1 << 20
	const hop, combine = 4 * time.Microsecond, n / 5
	for _, c := range []struct {
		name      string
		got, want time.Duration
	}{
		{"doubling", m.Doubling(n), 3 * (hop + n + combine)},
		{"halving", m.Halving(n), 6*hop + 2*n*7/8 + combine*7/8},
		{"tree", m.Tree(n), 3 * (hop + n)},
		{"chain", m.Chain(n, n/8), 7*(hop+n/8) + 7*(2*time.Microsecond+n/8)},
		{"barrier", m.Barrier(), 3 * hop},
	} {
		if off := c.got - c.want; off < -10 || off > 10 {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// Of one level, all processes of a host send to others at once; of two, the leader alone.
func TestHostsShareAnInterface(t *testing.T) {
	in := Link{Latency: time.Microsecond, Bandwidth: 1e12}
	out := Link{Overhead: 10 * time.Microsecond, Bandwidth: 1e9}
	m := Model{Network{in, out}, Even(8, 2)}
	if got, want := m.Doubling(0), 2*time.Microsecond+(4+3)*5*time.Microsecond; got != want {
		t.Errorf("doubling: %v, want %v", got, want)
	}
	if got, want := m.AllreduceByLevels(0), 4*time.Microsecond+20*time.Microsecond; got != want {
		t.Errorf("two levels: %v, want %v", got, want)
	}
	if got, want := m.Barrier(), (4+0+4+1+4+3)*5*time.Microsecond; got != want {
		t.Errorf("barrier: %v, want %v", got, want)
	}
}

func TestDefaults(t *testing.T) {
	if n := (Network{}).WithDefaults(); n != Standard() {
		t.Errorf("%+v", n)
	}
	n := Network{Inside: Link{Overhead: time.Second}}.WithDefaults()
	if n.Inside.Latency != 0 || n.Inside.Overhead != time.Second || n.Inside.Bandwidth != Standard().Inside.Bandwidth {
		t.Errorf("%+v", n)
	}
}
