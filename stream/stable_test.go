package stream_test

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/stream"
)

// A member that has given up a part of a stream never answers for it, and the root
// learns which one that is, wherever it is in the tree. The others still answer:
// without it, all is stable.
func TestLossIsNeverStable(t *testing.T) {
	for lossy := protocol.Rank(1); lossy < 8; lossy++ {
		n := newNetwork(t, 8, 1, faults{}, func(c *stream.Config) { c.KeepBytes = 40 << 10 })
		root := n.members[0]
		n.members[lossy].dead = true // cut off, as its peers see it
		for i := range 200 {
			n.broadcast(0, message(0, i, 2000))
			for range 60 {
				n.step()
			}
		}
		n.run(minute)
		n.members[lossy].dead = false
		for _, h := range n.members {
			h.Up(n.now, lossy)
			n.pump(h)
		}
		n.run(n.now + minute)
		if n.members[lossy].lost == 0 {
			t.Fatalf("rank %d has lost nothing", lossy)
		}
		for i := range 2 { // the second time, of what it has got
			upTo := root.Poll(n.now)
			n.pump(root)
			for until := n.now + minute/60; n.now < until && n.step(); {
			}
			if root.Stable() >= upTo || !slices.Equal(root.Lossy(), []protocol.Rank{lossy}) {
				t.Errorf("stable up to %d of %d, lossy %v, want %d", root.Stable(), upTo, root.Lossy(), lossy)
			}
			n.broadcast(0, message(0, 200+i, 2000))
		}
		upTo := root.Poll(n.now)
		n.members[lossy].dead = true
		n.changeView(2, slices.DeleteFunc([]protocol.Rank{0, 1, 2, 3, 4, 5, 6, 7}, func(r protocol.Rank) bool { return r == lossy }))
		n.run(n.now + minute)
		if root.Stable() < upTo || len(root.Lossy()) > 0 {
			t.Errorf("without rank %d, stable up to %d of %d, lossy %v", lossy, root.Stable(), upTo, root.Lossy())
		}
	}
}
