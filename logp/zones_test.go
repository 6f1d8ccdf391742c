package logp_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// The rules of a network of two levels, one by one. Ranks 0 and 1 are in one zone, 2
// and 3 in another.
func TestModelOfZones(t *testing.T) {
	type sends = map[int][]scriptedSend
	type heard = map[int][]string
	zones := logp.Zones{Of: []int32{0, 0, 1, 1}, L: 20, O: 5}
	tests := []struct {
		name       string
		sends      sends
		faults     logp.Faults
		heard      heard
		quiescence protocol.Time
	}{
		{
			name:  "one hop takes 2o+L of its level",
			sends: sends{0: {{to: 1}}, 2: {{to: 1}}},
			heard: heard{1: {"8 from 0", "30 from 2"}}, quiescence: 30,
		},
		{
			name:  "a send to another zone keeps the port busy for its overhead",
			sends: sends{0: {{to: 2}, {to: 1}}},
			heard: heard{1: {"13 from 0"}, 2: {"30 from 0"}}, quiescence: 30,
		},
		{
			name: "a short receive waits for a long one that began earlier and ends later",
			// 2's message is received from 25 to 30. 0's arrives at 26.
			sends: sends{2: {{to: 1}}, 0: {{at: 21, to: 1}}},
			heard: heard{1: {"30 from 2", "33 from 0"}}, quiescence: 33,
		},
		{
			name:  "a long receive waits for a short one",
			sends: sends{2: {{to: 1}}, 0: {{at: 19, to: 1}}},
			heard: heard{1: {"27 from 0", "32 from 2"}}, quiescence: 32,
		},
		{
			name:   "a message to a dead process of another zone counts until it arrives",
			sends:  sends{0: {{to: 2}}},
			faults: logp.Faults{Dead: []protocol.Rank{2}}, heard: heard{}, quiescence: 25,
		},
		{
			name:   "a send to another zone that death interrupts is torn",
			sends:  sends{0: {{to: 1}, {to: 2}}},
			faults: logp.Faults{Deaths: []logp.Death{{Rank: 0, At: 7}}},
			heard:  heard{1: {"8 from 0"}}, quiescence: 8,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			playScript(t, logp.Params{L: 2, O: 3, Zones: &zones}, tt.sends, tt.faults, tt.heard, tt.quiescence)
		})
	}
}

// Whatever the zones, a network whose two levels cost the same shows what a network of
// one level does.
func TestZonesThatCostNothingChangeNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		size := protocol.Rank(1 + rng.IntN(40))
		params := logp.Params{L: protocol.Time(rng.IntN(6)), O: protocol.Time(1 + rng.IntN(4))}
		plan := randomPlan(t, rng, size, params)
		faults := logp.Faults{Dead: logp.RandomDead(size, 0, rng.IntN(int(size)), rng.Uint64())}
		if size > 1 {
			faults.Deaths = []logp.Death{{Rank: 1 + protocol.Rank(rng.Int64N(int64(size)-1)), At: protocol.Time(1 + rng.IntN(40)), Torn: rng.IntN(2) == 0}}
		}
		zones := &logp.Zones{Of: make([]int32, size), L: params.L, O: params.O}
		for i := range zones.Of {
			zones.Of[i] = rng.Int32N(4)
		}
		var results [2]logp.Result
		for i, z := range []*logp.Zones{nil, zones} {
			params.Zones = z
			sim, err := logp.NewSimulator[broadcast.Body](params)
			if err != nil {
				t.Fatal(err)
			}
			if results[i], err = sim.Run(plan.Group().Machines(7), faults); err != nil {
				t.Fatal(err)
			}
		}
		results[1].BetweenZones = 0
		if results[0] != results[1] {
			t.Fatalf("P=%d %+v faults %+v:\n  without zones %+v\n  with          %+v", size, params, faults, results[0], results[1])
		}
	}
}

// randomPlan is a broadcast by a random tree and a random correction.
func randomPlan(t *testing.T, rng *rand.Rand, size protocol.Rank, params logp.Params) *broadcast.Plan {
	t.Helper()
	shapes := []topology.Shape{topology.Binomial(), topology.KAry(3), topology.Optimal(params.L, params.O)}
	tree, err := topology.New(shapes[rng.IntN(len(shapes))], topology.Interleaved, size, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := broadcast.Config{
		Size: size, Dissemination: broadcast.Tree{Tree: tree},
		Correction: []broadcast.Correction{nil, broadcast.Checked{}, broadcast.Safe{Distance: 2}, broadcast.Delayed{Delay: 9}}[rng.IntN(4)],
	}
	if c.Correction != nil && rng.IntN(2) == 0 {
		c.Start, c.At = broadcast.Synchronized, topology.FinishTime(tree, params.L, params.O)
	}
	plan, err := broadcast.NewPlan(c)
	if err != nil {
		t.Fatal(fmt.Errorf("%+v: %w", c, err))
	}
	return plan
}
