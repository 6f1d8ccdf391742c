package stream_test

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// A member that has given up a part of a stream never acknowledges it, and the root
// learns which member that is, wherever it is in the tree. The others still answer:
// without it, everything is stable.
func TestLossIsNeverStable(t *testing.T) {
	for incomplete := protocol.Rank(1); incomplete < 8; incomplete++ {
		n := newNetwork(t, 8, 1, faults{}, func(c *stream.Config) { c.KeepBytes = 40 << 10 })
		root := n.members[0]
		n.members[incomplete].dead = true // cut off, as its peers see it
		for i := range 200 {
			n.broadcast(0, message(0, i, 2000))
			for range 60 {
				n.step()
			}
		}
		n.run(n.now + minute)
		n.members[incomplete].dead = false
		for _, h := range n.members {
			h.Up(n.now, incomplete)
			n.pump(h)
		}
		n.run(n.now + minute)
		if n.members[incomplete].lost == 0 {
			t.Fatalf("rank %d has lost nothing", incomplete)
		}
		for i := range 2 { // the second time, of what it has received
			upTo := root.Poll(n.now)
			n.pump(root)
			for until := n.now + minute/60; n.now < until && n.step(); {
			}
			if root.Stable() >= upTo || !slices.Equal(root.Incomplete(), []protocol.Rank{incomplete}) {
				t.Errorf("stable up to %d of %d, incomplete %v, want %d", root.Stable(), upTo, root.Incomplete(), incomplete)
			}
			n.broadcast(0, message(0, 200+i, 2000))
		}
		upTo := root.Poll(n.now)
		n.members[incomplete].dead = true
		n.changeView(2, slices.DeleteFunc([]protocol.Rank{0, 1, 2, 3, 4, 5, 6, 7},
			func(r protocol.Rank) bool { return r == incomplete }))
		n.run(n.now + minute)
		if root.Stable() < upTo || len(root.Incomplete()) > 0 {
			t.Errorf("without rank %d, stable up to %d of %d, incomplete %v", incomplete, root.Stable(), upTo, root.Incomplete())
		}
	}
}

// Nothing is stable that has arrived at members which are frozen: the next view may be without
// the root, and cut its stream before that. When they go on in the same view, it is.
func TestFrozenMembersProveNothingNew(t *testing.T) {
	for _, size := range []int{2, 3, 8} {
		n := newNetwork(t, size, 1, faults{}, nil)
		root := n.members[0]
		n.broadcast(0, message(0, 0, 100))
		n.run(n.now + minute)
		for _, h := range n.members[1:] {
			h.Freeze()
		}
		before := root.Poll(n.now)
		n.broadcast(0, message(0, 1, 100))
		upTo := root.Poll(n.now)
		n.pump(root)
		for until := n.now + minute/60; n.now < until && n.step(); {
		}
		if stable := root.Stable(); stable >= upTo {
			t.Errorf("of %d members, all others are frozen: stable up to %d of %d", size, stable, upTo)
		}
		for _, h := range n.members[1:] {
			h.Thaw()
			n.pump(h)
		}
		n.run(n.now + minute)
		if stable := root.Stable(); stable < upTo || before >= upTo {
			t.Errorf("of %d members, all go on: stable up to %d of %d", size, stable, upTo)
		}
	}
}
