package stream_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/stream"
)

// Each member notes the arrival of a marked message once, and of no other one. Below a
// member that is stopped it has come by correction: inline if it was the only one, and
// otherwise on request.
func TestArrivals(t *testing.T) {
	for others, by := range []stream.Path{stream.ByOffer, stream.ByPull} {
		const size = 16
		n := newNetwork(t, size, 1, faults{}, nil)
		n.freeze(1) // an inner node of the tree of root 0
		for i := range others {
			n.broadcast(0, message(0, i, 100))
		}
		n.members[0].Trace()
		n.broadcast(0, message(0, others, 100))
		n.run(n.now + minute)
		paths := make(map[stream.Path]int)
		for _, h := range n.members {
			if h.rank == 1 {
				continue
			}
			arrivals := h.Arrivals()
			if len(arrivals) != 1 || arrivals[0].Root != 0 || arrivals[0].Number != uint64(others) || arrivals[0].At > n.now {
				t.Fatalf("rank %d: %+v", h.rank, arrivals)
			}
			a := arrivals[0]
			if own := h.rank == 0; own != (a.From == h.rank) || a.From == 1 {
				t.Errorf("rank %d: %+v", h.rank, a)
			}
			paths[a.Path]++
			if again := h.Arrivals(); len(again) != 0 {
				t.Errorf("rank %d, again: %+v", h.rank, again)
			}
		}
		if paths[by] == 0 {
			t.Errorf("after %d others: %v", others, paths)
		}
	}
}

// Marks that make no sense are refused.
func TestBrokenTracesAreRefused(t *testing.T) {
	m, data := fed(t, 1, 1, 1, nil)
	for _, flags := range []byte{128, 1 | 32 | 128} { // no beginning, and a batch
		frame := append(slices.Clone(data[0][:30]), "\x01x"...)
		frame[1] = flags
		if err := m.Receive(1, 0, frame); !errors.Is(err, stream.ErrFrame) {
			t.Errorf("flags %#x: error %v", flags, err)
		}
	}
}
