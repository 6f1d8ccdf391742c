package experiments

import (
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// A healed tree reaches all ranks that are left, each by its parent, and correction over
// it has nothing to close.
func TestHealedTreeReachesAllWhoAreLeft(t *testing.T) {
	for seed := range uint64(20) {
		const size = 300
		for _, shape := range Table1Shapes(2, 1) {
			for _, root := range []protocol.Rank{0, 7} {
				tree, err := topology.New(shape, topology.Interleaved, size, root)
				if err != nil {
					t.Fatal(err)
				}
				h := Heal(tree, logp.RandomDead(size, root, 90, seed))
				checkHealed(t, h)
				s := Scenario{
					Size: h.Size(), Root: h.Root(), L: 2, O: 1, Dissemination: "tree", Tree: h,
					Correction: "checked", Start: broadcast.Synchronized, Runs: 1,
				}
				report, err := s.Run(t.Context(), nil)
				if err != nil || report.MaxGap.Max != 0 || report.CorrectionTime.Max != 8 {
					t.Fatalf("%v from %d, seed %d: %+v, %v", shape, root, seed, report, err)
				}
			}
		}
	}
}

func checkHealed(t *testing.T, h topology.Tree) {
	t.Helper()
	if h.Size() != 210 {
		t.Fatalf("%d are left of 300 less 90", h.Size())
	}
	reached := 1
	for r := range h.Size() {
		for i := 0; ; i++ {
			child, ok := h.Child(r, i)
			if !ok {
				break
			}
			reached++
			if parent, index := h.Parent(child); parent != r || index != i || h.Depth(child) != h.Depth(r)+1 {
				t.Fatalf("child %d of %d has parent %d, index %d", child, r, parent, index)
			}
		}
	}
	if reached != int(h.Size()) {
		t.Fatalf("%d of %d are in the tree", reached, h.Size())
	}
}
