package zones

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/experiments"
	"github.com/pleach-go/pleach/internal/testutil"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// fleet is a scenario of small zones.
func fleet(zones, members, delegates protocol.Rank) *Scenario {
	return &Scenario{
		Layout: Layout{Zones: zones, Members: members, Delegates: delegates},
		L:      2, O: 1, FarL: 40, FarO: 2,
		BackboneShape: topology.Optimal(40, 2), FlatShape: topology.Optimal(40, 2),
		Runs: 1, Seed: 1,
	}
}

func (s *Scenario) mustCheck(t *testing.T) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}

// In a fleet of two zones of three, every set of dead processes, every origin and every
// number of delegates: each live process is reached whose zone has a live delegate.
func TestEverySetOfDead(t *testing.T) {
	for _, correction := range []string{"", "checked"} {
		for delegates := range protocol.Rank(3) {
			for origin := range protocol.Rank(6) {
				s := fleet(2, 3, delegates+1)
				s.Origin, s.Correction = origin, correction
				for set := range 1 << 6 {
					if set>>origin&1 == 0 {
						s.reachesAll(t, set)
					}
				}
			}
		}
	}
}

// reachesAll runs the scenario with a set of processes dead. If no delegate of the
// origin's zone lives, the message does not leave it.
func (s *Scenario) reachesAll(t *testing.T, set int) {
	t.Helper()
	s.Fixed = nil
	for r := range s.Size() {
		if set>>r&1 != 0 {
			s.Fixed = append(s.Fixed, r)
		}
	}
	s.mustCheck(t)
	processes := s.play(t, logp.Faults{Dead: s.Fixed})
	live := func(zone protocol.Rank) bool {
		for d := range s.Delegates {
			if set>>(zone*s.Members+d)&1 == 0 {
				return true
			}
		}
		return false
	}
	home := s.Origin / s.Members
	for i := range processes {
		p := &processes[i]
		want := p.zone == home || live(p.zone) && live(home)
		if set>>i&1 == 0 && p.Complete() != want {
			t.Fatalf("%d delegates, origin %d, dead %v, correction %q: rank %d has the message: %v, not %v", s.Delegates, s.Origin, s.Fixed, s.Correction, i, p.Complete(), want)
		}
	}
}

// play drives the machines once and returns them.
func (s *Scenario) play(t *testing.T, faults logp.Faults) []Process {
	t.Helper()
	plans, err := s.plans()
	if err != nil {
		t.Fatal(err)
	}
	params := s.network()
	params.Zones.Of = s.zoneOf()
	sim, err := logp.NewSimulator[Body](params)
	if err != nil {
		t.Fatal(err)
	}
	sim.Initiators = []protocol.Rank{s.Origin}
	processes, machines := s.processes(&run{plans: plans})
	for i := range processes {
		processes[i].reset()
	}
	if _, err := sim.Run(machines, faults); err != nil {
		t.Fatal(err)
	}
	return processes
}

// A lead that is not the origin dies at any moment: every other process gets the message.
func TestLeadDiesAtAnyMoment(t *testing.T) {
	for origin := range protocol.Rank(6) {
		for _, lead := range []protocol.Rank{0, 3} {
			for at := protocol.Time(1); at < 400; at++ {
				s := fleet(2, 3, 3)
				s.Origin = origin
				s.mustCheck(t)
				if lead == origin {
					continue
				}
				for i, p := range s.play(t, logp.Faults{Deaths: []logp.Death{{Rank: lead, At: at}}}) {
					if protocol.Rank(i) != lead && !p.Complete() {
						t.Fatalf("origin %d, rank %d dies at %d: rank %d is not reached", origin, lead, at, i)
					}
				}
			}
		}
	}
}

// Without faults, a message crosses to each zone once, and correction on the backbone once
// more.
func TestMessagesBetweenZones(t *testing.T) {
	for _, zones := range []protocol.Rank{1, 2, 3, 16, 100} {
		for origin := range protocol.Rank(8) {
			s := fleet(zones, 8, 3)
			s.Origin = origin
			s.mustCheck(t)
			r, err := s.Run(context.Background(), Fleet, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := float64(2*zones - 1)
			if zones == 1 {
				want = 0
			}
			if r.WANMessages.Max != want {
				t.Errorf("%d zones, origin %d: %g messages between zones, not %g", zones, origin, r.WANMessages.Max, want)
			}
			if r.Unreached.Processes > 0 {
				t.Errorf("%d zones, origin %d: %d processes are not reached", zones, origin, r.Unreached.Processes)
			}
		}
	}
}

// Both engines show about the same. What ports cost that a delegate's two groups share,
// the sparse engine leaves out.
func TestEnginesAgree(t *testing.T) {
	for _, faults := range []Faults{{}, {Dead: 20}, {DeadLeads: 5}, {DeadZones: 3}, {Dead: 40, DeadLeads: 9, DeadZones: 4}} {
		s := fleet(32, 64, 3)
		s.Faults, s.Runs = faults, 10
		s.Correction, s.Start = "checked", broadcast.Synchronized
		var reports [2]*Report
		for i, engine := range []string{experiments.EngineEvents, experiments.EngineSparse} {
			s.Engine = engine
			s.mustCheck(t)
			var err error
			if reports[i], err = s.Run(context.Background(), Fleet, nil); err != nil {
				t.Fatal(err)
			}
			if reports[i].Engine != engine {
				t.Fatalf("engine %s, not %s", reports[i].Engine, engine)
			}
		}
		events, sparse := reports[0], reports[1]
		if d := events.Coloring.Max / sparse.Coloring.Max; d < 0.99 || d > 1.1 {
			t.Errorf("%+v: colored at %g by events, at %g by sparse", faults, events.Coloring.Max, sparse.Coloring.Max)
		}
		if events.WANMessages != sparse.WANMessages {
			t.Errorf("%+v: messages between zones %+v by events, %+v by sparse", faults, events.WANMessages, sparse.WANMessages)
		}
		if events.Unreached != sparse.Unreached || events.CutOff != sparse.CutOff {
			t.Errorf("%+v: unreached %+v, cut off %d by events, %+v, %d by sparse", faults, events.Unreached, events.CutOff, sparse.Unreached, sparse.CutOff)
		}
		if d := events.MessagesPerProcess.Mean / sparse.MessagesPerProcess.Mean; d < 0.97 || d > 1.03 {
			t.Errorf("%+v: %g messages per process by events, %g by sparse", faults, events.MessagesPerProcess.Mean, sparse.MessagesPerProcess.Mean)
		}
	}
}

// The formulas for a flat group that is too large to simulate say what the simulation of a
// smaller one shows.
func TestFlatModel(t *testing.T) {
	for _, size := range []protocol.Rank{2, 100, 1000} {
		s := fleet(size, 1, 1)
		s.mustCheck(t)
		simulated, err := s.Run(context.Background(), Flat, nil)
		if err != nil {
			t.Fatal(err)
		}
		model, err := s.modelFlat()
		if err != nil {
			t.Fatal(err)
		}
		if model.Coloring != simulated.Coloring || model.WANMessages != simulated.WANMessages || model.MessagesPerProcess != simulated.MessagesPerProcess {
			t.Errorf("%d processes: simulated %+v, model %+v", size, simulated, model)
		}
	}
}

// Every process gets a rank of its own.
func TestDeal(t *testing.T) {
	for _, size := range []protocol.Rank{1, 2, 3, 17, 1000, 4096} {
		d, seen := newDeal(size, 7), map[protocol.Rank]bool{}
		for p := range size {
			r := d.rank(p)
			if r < 0 || r >= size || seen[r] {
				t.Fatalf("of %d, process %d gets rank %d", size, p, r)
			}
			seen[r] = true
		}
	}
}

// Seeds decide everything: the figures of a fleet beside a flat group and gossip.
func TestGoldenFigures(t *testing.T) {
	var b strings.Builder
	for _, faults := range []Faults{{}, {Dead: 40}, {DeadLeads: 6}, {DeadZones: 4}} {
		s := fleet(64, 64, 3)
		s.Faults, s.Runs = faults, 3
		s.mustCheck(t)
		for _, system := range []string{Fleet, Flat, Gossip} {
			r, err := s.Run(context.Background(), system, nil)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "dead %d, leads %d, zones %d: %-6s %s coloring %g to %g, quiescence %g, wan %g, per process %.4f, unreached %d\n",
				faults.Dead, faults.DeadLeads, faults.DeadZones, r.System, r.Engine, r.Coloring.P5, r.Coloring.Max, r.Quiescence.Max,
				r.WANMessages.Mean, r.MessagesPerProcess.Mean, r.Unreached.Processes)
		}
	}
	testutil.GoldenLines(t, "testdata/figures.golden", strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"))
}
