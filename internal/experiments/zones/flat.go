package zones

import (
	"context"
	"fmt"
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
// The sparse engine cannot do trees for a latency of many overheads, which are irregular.
func (s *Scenario) runFlat(ctx context.Context, progress func(int)) (*Report, error) {
	flat := s.flatScenario()
	if s.Size() > maxFlat && s.regular(flat) {
		return s.runGroup(ctx, Flat, flat, progress)
	}
	if s.Size() > MaxEvents {
		return s.modelFlat()
	}
	dealt := newDeal(s.Size(), s.Seed)
	flat.Engine = experiments.EngineEvents
	flat.L, flat.O = s.L, s.O
	flat.Zones = &logp.Zones{Of: make([]int32, s.Size()), L: s.FarL, O: s.FarO}
	for p := range s.Size() {
		flat.Zones.Of[dealt.rank(p)] = int32(p / s.Members)
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

// regular reports whether the sparse engine can run the flat group.
func (s *Scenario) regular(flat *experiments.Scenario) bool {
	if _, _, err := flat.SparseRule(); err != nil {
		return false
	}
	tree, err := topology.New(flat.Shape, flat.Order, flat.Size, flat.Root)
	if err != nil {
		return false
	}
	_, err = logp.NewLineage(tree, logp.Params{L: flat.L, O: flat.O})
	return err == nil
}

// modelFlat is the flat group if no process is dead, with one message of correction from
// each. An optimal tree gives ranks in the order in which processes are reached, so it is
// through when the last one is.
func (s *Scenario) modelFlat() (*Report, error) {
	if s.FlatShape != topology.Optimal(s.FarL, s.FarO) {
		return nil, fmt.Errorf("zones: a flat group of more than %d processes must have an optimal tree, or one that the sparse engine can simulate", MaxEvents)
	}
	tree, err := topology.New(s.FlatShape, topology.Interleaved, s.Size(), 0)
	if err != nil {
		return nil, err
	}
	r := result{Result: logp.Result{Live: s.Size()}}
	for last := s.Size() - 1; last != 0; {
		parent, index := tree.Parent(last)
		r.Coloring += protocol.Time(index)*s.FarO + 2*s.FarO + s.FarL
		last = parent
	}
	r.Quiescence = r.Coloring + 2*s.FarO + s.FarL
	r.Messages[protocol.Dissemination], r.Messages[protocol.Correction] = int64(s.Size()-1), int64(s.Size())
	r.BetweenZones = s.between(float64(r.Total()))
	return s.report(Flat, EngineModel, []result{r}), nil
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
