package experiments

import (
	"testing"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Corrected Gossip's Figure 7 has T = 37 for FCG on 4,096 nodes, with one O added
// to what Eq. 5 says. It must not fall for a T that colors nobody.
func TestFailureProofTime(t *testing.T) {
	for _, miss := range []float64{0.5, 0.1, 0.01, 1e-3, 1e-6} {
		for _, size := range []protocol.Rank{64, 4096, 1 << 20} {
			g := logp.GossipModel{Size: size, Live: size, L: 2, O: 1, Miss: miss}
			c, err := FailureProofTime(g)
			least, _ := g.BestOpportunistic()
			if err != nil || c.Time < least.Time || c.Time > least.Time+20 {
				t.Errorf("%d processes, δ = %g: %+v, %v; opportunistic %+v", size, miss, c, err, least)
			}
			if size == 4096 && miss == 1e-3 && c.Time != 36 {
				t.Errorf("T = %d, want 36", c.Time)
			}
		}
	}
}
