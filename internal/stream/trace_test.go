package stream_test

import (
	"testing"

	"github.com/pleach-go/pleach/internal/stream"
)

// Each member notes the arrival of a marked message once, and of no other one. Below a
// member that is stopped it has come by correction.
func TestArrivals(t *testing.T) {
	const size = 16
	n := newNetwork(t, size, 1, faults{}, nil)
	n.freeze(1) // an inner node of the tree of root 0
	root := n.members[0]
	n.broadcast(0, message(0, 0, 100))
	root.Trace()
	n.broadcast(0, message(0, 1, 100))
	n.broadcast(0, message(0, 2, 100))
	n.run(n.now + minute)
	corrected := 0
	for _, h := range n.members {
		if h.rank == 1 {
			continue
		}
		arrivals := h.Arrivals()
		if len(arrivals) != 1 || arrivals[0].Root != 0 || arrivals[0].Number != 1 || arrivals[0].At > n.now {
			t.Fatalf("rank %d: %+v", h.rank, arrivals)
		}
		switch a := arrivals[0]; {
		case h.rank == 0 && a.From != 0, h.rank > 0 && a.From == h.rank, a.From == 1:
			t.Errorf("rank %d: %+v", h.rank, a)
		case a.Path != stream.ByTree:
			corrected++
		}
		if again := h.Arrivals(); len(again) != 0 {
			t.Errorf("rank %d, again: %+v", h.rank, again)
		}
	}
	if corrected == 0 {
		t.Error("none came by correction")
	}
}
