package experiments

import (
	"fmt"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// FailureProofTime chooses how long to gossip before failure-proof correction,
// by Corrected Gossip's Eq. 5 (f = 1), from the T that is best for opportunistic
// correction on. With a shorter one so few processes are colored that a chain of
// five of them hardly exists, and Eq. 5 takes no chain for a short one.
func FailureProofTime(g logp.GossipModel) (logp.Choice, error) {
	least, err := g.BestOpportunistic()
	if err != nil {
		return logp.Choice{}, fmt.Errorf("experiments: failure-proof correction: %w", err)
	}
	const further, nodes = 64, 5 // steps to look at; nodes of a chain
	first, after := int(least.Time/g.O), int((g.L+g.O)/g.O)
	colored := g.ColoredAfter(first + further + after)
	best := logp.Choice{Latency: protocol.Never}
	for t := first; t < first+further; t++ {
		chain := g.Chain(colored[t+after], nodes)
		now := protocol.Time(t) * g.O
		if total := now + 4*protocol.Time(chain)*g.O + g.L - 13*g.O; total <= best.Latency {
			best = logp.Choice{Time: now, Latency: total, Gap: chain}
		}
	}
	return best, nil
}
