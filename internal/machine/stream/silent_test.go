package stream_test

import (
	"fmt"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A member of a view that does not answer holds up the root for a moment only, wherever it
// is in the tree: the root goes on until the bound on what is kept for such members. If the
// member was only stopped, it has everything in the end.
func TestSilentMemberDoesNotHoldUpTheRoot(t *testing.T) {
	const (
		size   = 8
		length = 1000
		// keep and hold are KeepBytes of smallWindows, and what is held at most for members
		// that do not answer.
		keep, hold = 64 << 10, 8 * 64 << 10
	)
	all := []protocol.Rank{0, 1, 2, 3, 4, 5, 6, 7}
	for _, silent := range [][]protocol.Rank{{1}, {2}, {3}, {4}, {7}, {1, 2}, {4, 6}} {
		t.Run(fmt.Sprint(silent), func(t *testing.T) {
			n := newNetwork(t, size, 1, faults{}, smallWindows)
			n.changeView(1, all)
			for _, r := range silent {
				n.freeze(r)
			}
			var sent [][]byte
			began, root := n.now, n.members[0]
			for i := 0; n.now < began+minute/60; { // shorter than a detector takes
				m := message(0, i, length)
				if root.Write(m, 0) == nil {
					sent = append(sent, m)
					i++
				}
				n.pump(root)
				n.step()
			}
			if got := len(sent) * length; got < hold/2 || got > hold+2*keep {
				t.Errorf("the root has sent %d bytes past silent members, want %d to %d", got, hold/2, hold+2*keep)
			}
			for _, r := range silent {
				n.thaw(r)
			}
			n.run(n.now + 10*minute)
			n.check(map[protocol.Rank][][]byte{0: sent})
			for _, h := range n.members {
				if h.lost > 0 {
					t.Errorf("rank %d has lost %d segments", h.rank, h.lost)
				}
			}
		})
	}
}
