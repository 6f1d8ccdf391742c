package broadcast_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// check checks a property as often as the budget allows.
func check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	for range pick(2, 20, 500) { // times a hundred
		rapid.Check(t, property)
		if t.Failed() {
			return
		}
	}
}

// drawTree draws a tree, a network and a root, without any correction yet.
func drawTree(t *rapid.T) experiments.Scenario {
	s := experiments.Scenario{
		Dissemination: "tree",
		Size:          protocol.Rank(rapid.Int64Range(1, 200).Draw(t, "P")),
		L:             protocol.Time(rapid.Int64Range(0, 6).Draw(t, "L")),
		O:             protocol.Time(rapid.Int64Range(1, 4).Draw(t, "o")),
		Order:         rapid.SampledFrom([]topology.Order{topology.Interleaved, topology.InOrder}).Draw(t, "order"),
	}
	s.Root = protocol.Rank(rapid.Int64Range(0, int64(s.Size)-1).Draw(t, "root"))
	s.Shape = rapid.SampledFrom(append(shapes(s.L, s.O), topology.KAry(1), topology.KAry(3))).Draw(t, "shape")
	return s
}

// drawDead draws the dead, never the root.
func drawDead(t *rapid.T, s *experiments.Scenario) []protocol.Rank {
	n := rapid.IntRange(0, int(s.Size)-1).Draw(t, "dead")
	return logp.RandomDead(s.Size, s.Root, n, rapid.Uint64().Draw(t, "who"))
}

// Corrected Trees §3.3: "A correction phase follows the dissemination phase and
// is independent of the tree type." Whatever promises to reach every live
// process reaches the same ones: all.
func TestAllThatPromiseLivenessReachTheSame(t *testing.T) {
	check(t, func(rt *rapid.T) {
		s := drawTree(rt)
		dead := drawDead(rt, &s)
		for _, correction := range corrections {
			for _, m := range modes {
				s.Correction, s.Start, s.EarlyOnlyRelay = correction, m.start, m.onlyRelay
				if goes(correction, m) && promisesLiveness(&s) {
					newTrial(rt, s).reachesAll(logp.Faults{Dead: dead})
				}
			}
		}
	})
}

// Corrected Trees §3.1: "all processes are organized into a virtual ring": no
// rank of it is special but the root, so turning the ring changes nothing.
//
// It does so to the step as long as no message waits for a receive port: of two
// that want it and were decided together, the simulator lets the lower rank's
// pass first, and turning changes which that is. Which processes the message reaches
// depends on no such tie, except where the paper's rules make it a matter of
// timing: the optimized rule, and early processes that only relay.
func TestTurningTheRingChangesNothing(t *testing.T) {
	inTurn := 0
	check(t, func(rt *rapid.T) {
		s := drawTree(rt)
		s.Correction = rapid.SampledFrom(corrections).Draw(rt, "correction")
		m := rapid.SampledFrom(modes).Draw(rt, "mode")
		if !goes(s.Correction, m) {
			m = synchronized
		}
		s.Start, s.EarlyOnlyRelay = m.start, m.onlyRelay
		turned, dead := s, drawDead(rt, &s)
		s.Root = 0
		unturned := make([]protocol.Rank, len(dead))
		for i, r := range dead {
			unturned[i] = topology.Ring{Size: s.Size}.Left(r, turned.Root)
		}

		here, there := newTrial(rt, s), newTrial(rt, turned)
		waitedHere, waitedThere := here.countWaits(), there.countWaits()
		a, b := here.dead(unturned...), there.dead(dead...)
		faults := logp.Faults{Dead: dead}
		byTiming := kind(s.Correction) == "optimized" || m == relayOnly && !promisesLiveness(&s)
		if !byTiming && a.Unreached != b.Unreached {
			there.failf(faults, "from root 0 %d are never reached, turned %d", a.Unreached, b.Unreached)
		}
		if *waitedHere == 0 {
			inTurn++
			if *waitedThere > 0 || *a != *b {
				there.failf(faults, "from root 0: %+v\nturned: %+v", *a, *b)
			}
		}
	})
	t.Logf("%d broadcasts in which no message waits", inTurn)
}

// countWaits counts the messages that wait for a receive port.
func (t *trial) countWaits() *int {
	type way struct{ from, to protocol.Rank }
	waits, under := new(int), make(map[way][]protocol.Time)
	hop := 2*t.scenario.O + t.scenario.L
	t.sim.Trace = func(e logp.Event) {
		switch e.What {
		case logp.Sent:
			w := way{e.Rank, e.Peer}
			under[w] = append(under[w], e.Time)
		case logp.Received:
			w := way{e.Peer, e.Rank}
			if e.Time > under[w][0]+hop {
				*waits++
			}
			under[w] = under[w][1:]
		}
	}
	return waits
}
