package experiments

import (
	"strings"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// GossipMiss is the probability of missing a process that Corrected Gossip's
// evaluation aims at: an even chance that a million runs reach all (§IV-A).
const GossipMiss = 6.93e-7

// BestGossipTime chooses how long to gossip by Corrected Gossip's formulas for the
// scenario's correction (Eqs. 3–5).
func (s *Scenario) BestGossipTime() (protocol.Time, error) {
	choice, err := s.bestGossip()
	return choice.Time, err
}

func (s *Scenario) bestGossip() (logp.Choice, error) {
	model := logp.GossipModel{
		Size: s.Size, Live: s.Size - protocol.Rank(s.Dead+len(s.Fixed.Dead)),
		L: s.L, O: s.O, Miss: GossipMiss,
	}
	correction, err := ParseCorrection(s.Correction, s.Size, s.L, s.O)
	if err != nil {
		return logp.Choice{}, err
	}
	if d, ok := correction.(broadcast.Delayed); ok && d.Paced {
		return model.BestPaced(d.Delay)
	}
	switch name, _, _ := strings.Cut(s.Correction, ":"); name {
	case "none":
		return model.BestPlain()
	case "opportunistic", "optimized", "safe":
		return model.BestOpportunistic()
	case "failure-proof":
		return model.BestFailureProof()
	}
	return model.BestChecked()
}
