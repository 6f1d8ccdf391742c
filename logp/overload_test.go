package logp_test

import (
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// stretched runs a broadcast on overloaded processes.
func stretched(t *testing.T, o logp.Overload, dead ...protocol.Rank) logp.Result {
	t.Helper()
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, 64, 0)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := broadcast.NewPlan(broadcast.Config{
		Size: 64, Dissemination: broadcast.Tree{Tree: tree},
		Correction: broadcast.Delayed{Delay: 8},
	})
	if err != nil {
		t.Fatal(err)
	}
	sim, err := logp.NewSimulator[broadcast.Body](logp.Params{L: 2, O: 1})
	if err != nil {
		t.Fatal(err)
	}
	result, err := sim.Run(logp.Slow(plan.Group().Machines(1), o), logp.Faults{Dead: dead})
	if err != nil || result.Unreached > 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	return result
}

// Overload makes a broadcast slower and changes nothing else: the tree sends as many
// messages, a seed decides everything, and without a stretch nothing is slow.
func TestOverload(t *testing.T) {
	quiet := stretched(t, logp.Overload{Stretch: 1, O: 1, Seed: 1})
	slow := stretched(t, logp.Overload{Stretch: 20, O: 1, Seed: 1})
	if quiet != stretched(t, logp.Overload{O: 1, Seed: 2}) {
		t.Error("processes are slow without a stretch")
	}
	if slow != stretched(t, logp.Overload{Stretch: 20, O: 1, Seed: 1}) ||
		slow == stretched(t, logp.Overload{Stretch: 20, O: 1, Seed: 2}) {
		t.Error("the seed does not decide how slow processes are")
	}
	inTime, late := stretched(t, logp.Overload{O: 1, Seed: 1}, 1),
		stretched(t, logp.Overload{O: 1, Lateness: 5, Seed: 1}, 1)
	if late != stretched(t, logp.Overload{O: 1, Lateness: 5, Seed: 1}, 1) || late.Messages[1] >= inTime.Messages[1] {
		t.Errorf("late timers do not postpone what a message makes unnecessary: %+v, without: %+v", late, inTime)
	}
	if slow.Coloring < 3*quiet.Coloring || slow.Messages[0] != quiet.Messages[0] {
		t.Errorf("with a stretch of 20: %+v, without: %+v", slow, quiet)
	}
}
