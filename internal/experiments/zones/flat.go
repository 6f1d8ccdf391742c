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

// maxFlat is the largest fleet of whose flat group every message is simulated if the
// sparse engine can do it, too.
const maxFlat = 1 << 20

// runFlat runs the flat group: by events with the links that each message takes, with the
// sparse engine as if every link were one between zones, as all but one in so many are.
func (s *Scenario) runFlat(ctx context.Context, progress func(int)) (*Report, error) {
	flat := s.flatScenario()
	if _, _, err := flat.SparseRule(); err != nil || s.Size() <= maxFlat {
		dealt := newDeal(s.Size(), s.Seed)
		flat.Engine = experiments.EngineEvents
		flat.L, flat.O = s.L, s.O
		flat.Zones = &logp.Zones{Of: make([]int32, s.Size()), L: s.FarL, O: s.FarO}
		for p := range s.Size() {
			flat.Zones.Of[dealt.rank(p)] = int32(p / s.Members)
		}
	}
	if flat.Correction == "" {
		wait := 2 * (2*s.FarO + s.FarL) // all start at once
		if s.Start == broadcast.Overlapped {
			finish, err := flat.FinishTime()
			if err != nil {
				return nil, err
			}
			wait = finish + 2*s.FarO + s.FarL
		}
		flat.Correction = broadcast.Delayed{Delay: wait, Paced: true}.String()
	}
	return s.runGroup(ctx, Flat, flat, progress)
}

// runGroup runs one group of all processes, with the same ones dead as in the fleet.
func (s *Scenario) runGroup(ctx context.Context, system string, group *experiments.Scenario, progress func(int)) (*Report, error) {
	dealt := newDeal(s.Size(), s.Seed)
	group.Draw = func(seed uint64) []protocol.Rank {
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
		group.Fixed.Deaths = append(group.Fixed.Deaths, d)
	}
	r, err := group.Run(ctx, progress)
	if err != nil {
		return nil, err
	}
	results := make([]result, len(r.Results))
	for i := range results {
		results[i].Result = r.Results[i]
		if group.Zones == nil {
			results[i].BetweenZones = s.between(float64(r.Results[i].Total()))
		}
	}
	return s.report(system, r.Engine, results), nil
}

// between is how many of so many messages go between zones, if ranks are dealt at random.
func (s *Scenario) between(messages float64) int64 {
	return int64(math.Round(messages * float64(s.Size()-s.Members) / float64(s.Size()-1)))
}
