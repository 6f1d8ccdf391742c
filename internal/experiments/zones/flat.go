package zones

import (
	"context"
	"math"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// flatScenario is the broadcast in one group of all processes. Its network has only
// links between zones.
func (s *Scenario) flatScenario() *experiments.Scenario {
	return &experiments.Scenario{
		Size: s.Size(), Root: newDeal(s.Size(), s.Seed).rank(s.Origin),
		L: s.FarL, O: s.FarO, Dissemination: "tree", Shape: s.FlatShape, Order: topology.Interleaved,
		Correction: s.Correction, Start: s.Start, Runs: s.Runs, Seed: s.Seed, Drain: -1,
	}
}

// runFlat runs the flat group or gossip: by events with the links that each message takes,
// and beyond that as if every link were one between zones, as all but one in so many are.
func (s *Scenario) runFlat(ctx context.Context, system string, progress func(int)) (*Report, error) {
	flat := s.flatScenario()
	dealt := newDeal(s.Size(), s.Seed)
	flat.Draw = func(seed uint64) []protocol.Rank {
		dead := logp.NewDeadSet(s.Size())
		if err := s.draw(dead, seed); err != nil {
			panic(err) // Check has drawn it
		}
		ranks := dead.Ranks()
		for i, r := range ranks {
			ranks[i] = dealt.rank(r)
		}
		return ranks
	}
	for _, d := range s.Deaths {
		d.Rank = dealt.rank(d.Rank)
		flat.Fixed.Deaths = append(flat.Fixed.Deaths, d)
	}
	if s.Size() <= MaxEvents {
		flat.Engine = experiments.EngineEvents
		flat.L, flat.O = s.L, s.O
		flat.Zones = &logp.Zones{Of: make([]int32, s.Size()), L: s.FarL, O: s.FarO}
		for p := range s.Size() {
			flat.Zones.Of[dealt.rank(p)] = int32(p / s.Members)
		}
	}
	if system == Gossip {
		if err := s.gossip(flat); err != nil {
			return nil, err
		}
	}
	if flat.Correction == "" {
		if err := s.delay(flat); err != nil {
			return nil, err
		}
	}
	r, err := flat.Run(ctx, progress)
	if err != nil {
		return nil, err
	}
	results := make([]result, len(r.Results))
	for i := range results {
		results[i].Result = r.Results[i]
		if flat.Zones == nil {
			results[i].BetweenZones = s.between(float64(r.Results[i].Total()))
		}
	}
	return s.report(system, r.Engine, results), nil
}

// gossip makes the flat scenario one of gossip, until the time that Corrected Gossip's
// formulas choose for links between zones.
func (s *Scenario) gossip(flat *experiments.Scenario) (err error) {
	flat.Dissemination, flat.Start = "gossip", broadcast.Synchronized
	far := *flat
	far.L, far.O, far.Dead, far.Zones = s.FarL, s.FarO, s.deadOf(), nil
	flat.GossipTime, err = far.BestGossipTime()
	return err
}

// delay makes correction wait for as long as an answer takes if no process is dead.
func (s *Scenario) delay(flat *experiments.Scenario) error {
	wait := 2 * (2*s.FarO + s.FarL) // all start at once
	if flat.Start == broadcast.Overlapped {
		finish, err := flat.FinishTime()
		if err != nil {
			return err
		}
		wait = finish + 2*s.FarO + s.FarL
	}
	flat.Correction = broadcast.Delayed{Delay: wait, Paced: true}.String()
	return nil
}

// between is how many of so many messages go between zones, if ranks are dealt at random.
func (s *Scenario) between(messages float64) int64 {
	return int64(math.Round(messages * float64(s.Size()-s.Members) / float64(s.Size()-1)))
}

// modelGossip is what Corrected Gossip's formulas say of a fleet that is too large to
// simulate gossip. Messages of correction are not counted.
func (s *Scenario) modelGossip() (*Report, error) {
	var r result
	live := s.Size() - protocol.Rank(s.deadOf())
	model := logp.GossipModel{Size: s.Size(), Live: live, L: s.FarL, O: s.FarO, Miss: experiments.GossipMiss}
	choice, err := model.BestOpportunistic()
	if err != nil {
		return nil, err
	}
	var messages float64
	for _, colored := range model.ColoredAfter(int(choice.Time / s.FarO))[1:] {
		messages += colored
	}
	r.Coloring, r.Quiescence, r.Live = choice.Latency, choice.Latency, live
	r.Messages[protocol.Dissemination], r.BetweenZones = int64(messages), s.between(messages)
	return s.report(Gossip, "model", []result{r}), nil
}
