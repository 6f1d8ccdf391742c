package experiments

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// synchronized is a scenario that both engines can do.
func synchronized() Scenario {
	return Scenario{
		Size: 1000, Root: 3, L: 2, O: 1, Dissemination: "tree", Shape: topology.Lame(2),
		Correction: "checked", Start: broadcast.Synchronized, Dead: 30, Runs: 50, Seed: 7,
		Fixed: logp.Faults{Dead: []protocol.Rank{5, 6}},
		Draw:  func(seed uint64) []protocol.Rank { return []protocol.Rank{10 + protocol.Rank(seed%900)} },
	}
}

// Both engines do the same runs: the same seed, the same dead, the same results.
func TestEnginesShowTheSame(t *testing.T) {
	for _, correction := range []string{"checked", "opportunistic:2", "optimized:4", "safe:3"} {
		var results [2][]logp.Result
		for i, engine := range []string{EngineEvents, EngineSparse} {
			s := synchronized()
			s.Correction, s.Engine = correction, engine
			report, err := s.Run(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if report.Engine != engine || report.Memory == 0 {
				t.Errorf("asked for %s: engine %q, %d bytes", engine, report.Engine, report.Memory)
			}
			results[i] = report.Results
		}
		if !reflect.DeepEqual(results[0], results[1]) {
			t.Errorf("%s: events show %+v, sparse %+v", correction, results[0], results[1])
		}
	}
}

// What the sparse engine cannot do is left to events, and refused where sparse
// is asked for.
func TestSparseIsChosenWhereItApplies(t *testing.T) {
	for _, c := range []struct {
		change func(s *Scenario)
		why    string // it does not apply; "" if it does
	}{
		{func(*Scenario) {}, ""},
		{func(s *Scenario) { s.FreeReceive = true }, ""},
		{func(s *Scenario) { s.Start = broadcast.Overlapped }, "start everywhere at once"},
		{func(s *Scenario) { s.Correction = "none" }, "checked, opportunistic, optimized or safe"},
		{func(s *Scenario) { s.Correction = "throttled" }, "checked, opportunistic, optimized or safe"},
		{func(s *Scenario) { s.Correction = "failure-proof:1" }, "checked, opportunistic, optimized or safe"},
		{func(s *Scenario) { s.Order = topology.InOrder }, "interleaved tree"},
		{func(s *Scenario) { s.Dissemination, s.GossipTime = "gossip", 20 }, "interleaved tree"},
		{func(s *Scenario) { s.Fixed.Deaths = []logp.Death{{Rank: 9, At: 4}} }, "from the start"},
	} {
		s := synchronized()
		c.change(&s)
		want := EngineSparse
		if c.why != "" {
			want = EngineEvents
		}
		if name, _, err := s.engine(); name != want || err != nil {
			t.Errorf("%+v: engine %q, %v", s, name, err)
		}
		s.Engine = EngineSparse
		if err := s.Check(); c.why == "" && err != nil || c.why != "" &&
			(err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%+v: %v, want %q", s, err, c.why)
		}
		s.Engine = EngineEvents
		if name, _, err := s.engine(); name != EngineEvents || err != nil {
			t.Errorf("%+v: engine %q, %v", s, name, err)
		}
	}
	s := synchronized()
	s.Engine = "steam"
	if err := s.Check(); err == nil {
		t.Error("an engine that nobody knows is taken")
	}
}

// Processes that die do so between the times given, and the root is not among them.
func TestDyingHaveTheirTime(t *testing.T) {
	s := Scenario{Size: 10, Root: 3, L: 2, O: 1, Dying: 5, DyingFrom: 7, DyingUntil: 9}
	seen := map[protocol.Time]bool{}
	for seed := range uint64(50) {
		deaths := s.faults(seed).Deaths
		if len(deaths) != 5 {
			t.Fatalf("%d die", len(deaths))
		}
		for _, d := range deaths {
			seen[d.At] = true
			if d.Rank == s.Root || d.Rank < 0 || d.Rank >= s.Size {
				t.Errorf("rank %d dies", d.Rank)
			}
		}
	}
	if len(seen) != 3 || !seen[7] || !seen[8] || !seen[9] {
		t.Errorf("they die at %v", seen)
	}
}
