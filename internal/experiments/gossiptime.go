package experiments

import (
	"strings"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// GossipMiss is the probability of missing a process that Corrected Gossip's
// evaluation aims at: an even chance that a million runs reach all (§IV-A).
const GossipMiss = 6.93e-7

// BestGossipTime chooses how long to gossip by Corrected Gossip's formulas for
// the scenario's correction (Eqs. 3–5).
func (s *Scenario) BestGossipTime() (protocol.Time, error) {
	model := logp.GossipModel{
		Size: s.Size, Live: s.Size - protocol.Rank(s.Dead+len(s.Fixed.Dead)),
		L: s.L, O: s.O, Miss: GossipMiss,
	}
	best := model.BestChecked
	switch name, _, _ := strings.Cut(s.Correction, ":"); name {
	case "none":
		best = model.BestPlain
	case "opportunistic", "optimized", "safe":
		best = model.BestOpportunistic
	case "failure-proof":
		best = model.BestFailureProof
	}
	choice, err := best()
	return choice.Time, err
}
