package zones

import (
	"context"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Gossip has only links between zones, as all but one in so many are: Corrected Gossip's
// formulas, which choose for how long to gossip, know one kind of link. Where they do not
// fit the network, gossip is either slow or sends many times as many messages. For the same
// reason its correction is always paced: one of a fixed distance would miss processes.

// maxGossip is the largest fleet whose gossip is simulated: about all its messages are on
// their way at the same time.
const maxGossip = 1 << 20

// runGossip simulates gossip, or says what the formulas do of a fleet that is too large.
func (s *Scenario) runGossip(ctx context.Context, progress func(int)) (*Report, error) {
	group := s.flatScenario()
	group.Dissemination, group.Start = "gossip", broadcast.Synchronized
	group.Correction = broadcast.Delayed{Delay: 2 * (2*s.FarO + s.FarL), Paced: true}.String()
	known := *group
	known.Dead = s.deadOf()
	choice, err := known.BestGossip()
	switch {
	case err != nil:
		return nil, err
	case s.Size() > maxGossip:
		return s.modelGossip(known.GossipModel(), choice), nil
	}
	group.GossipTime = choice.Time
	return s.runGroup(ctx, Gossip, group, progress)
}

// modelGossip is what the formulas say. Messages of correction are not counted.
func (s *Scenario) modelGossip(model logp.GossipModel, choice logp.Choice) *Report {
	var r result
	var messages float64
	for _, colored := range model.ColoredAfter(int(choice.Time / s.FarO))[1:] {
		messages += colored
	}
	r.Coloring, r.Quiescence, r.Live = choice.Latency, choice.Latency, model.Live
	r.Messages[protocol.Dissemination], r.BetweenZones = int64(messages), s.between(messages)
	return s.report(Gossip, EngineModel, []result{r})
}
