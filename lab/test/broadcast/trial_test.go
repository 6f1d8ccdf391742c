package broadcast_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// pick chooses a size: with the race detector, without, in a full run.
func pick[T any](race, plain, whole T) T {
	switch {
	case testutil.Full.On():
		return whole
	case testutil.RaceEnabled:
		return race
	default:
		return plain
	}
}

// trial is one broadcast, ready to be run under many faults. Plan, processes
// and simulator are made once. It is not for concurrent use: parallel subtests
// have one each.
type trial struct {
	reporter
	scenario experiments.Scenario
	seed     uint64
	group    *broadcast.Group
	sim      *logp.Simulator[broadcast.Body]
	machines []protocol.Machine[broadcast.Body]
	result   logp.Result
	runs     int

	// everyDeath spares those (nil: none), and tries only these times (0: all).
	spared                func(protocol.Rank) bool
	firstDeath, lastDeath protocol.Time
}

// reporter is what a trial needs of testing.T or rapid.T.
type reporter interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// newTrial prepares a scenario that is known to be possible.
func newTrial(tb reporter, s experiments.Scenario) *trial {
	tb.Helper()
	if s.Correction == "" {
		s.Correction = "none"
	}
	plan, err := s.Plan()
	if err != nil {
		tb.Fatalf("%s: %v", replay(&s, 0, logp.Faults{}), err)
	}
	params := logp.Params{L: s.L, O: s.O}
	if plan.NeedsDetector() {
		params.Detector = new(protocol.Time) // perfect, and at once
	}
	sim, err := logp.NewSimulator[broadcast.Body](params)
	if err != nil {
		tb.Fatal(err)
	}
	return &trial{reporter: tb, scenario: s, seed: s.Seed, group: plan.Group(), sim: sim}
}

// run drives one broadcast to its end, which every broadcast must have.
func (t *trial) run(faults logp.Faults) *logp.Result {
	t.machines = t.group.Machines(t.seed)
	result, err := t.sim.Run(t.machines, faults)
	if err != nil {
		t.failf(faults, "%v", err)
	}
	t.result = result
	t.runs++
	return &t.result
}

// dead runs the broadcast with these processes dead from the start.
func (t *trial) dead(ranks ...protocol.Rank) *logp.Result { return t.run(logp.Faults{Dead: ranks}) }

// reachesAll fails the test if a live process does not get the message.
func (t *trial) reachesAll(faults logp.Faults) {
	if r := t.run(faults); r.Unreached > 0 {
		t.failf(faults, "ranks %v are never reached", t.unreached(faults))
	}
}

// unreached are the ranks that are uncolored after a run and not among the
// faults.
func (t *trial) unreached(faults logp.Faults) (ranks []protocol.Rank) {
	for r, m := range t.machines {
		rank := protocol.Rank(r)
		dies := slices.ContainsFunc(faults.Deaths, func(d logp.Death) bool { return d.Rank == rank })
		if !m.Complete() && !dies && !slices.Contains(faults.Dead, rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// failf ends the test with a command that shows the failure again.
func (t *trial) failf(faults logp.Faults, format string, args ...any) {
	t.Helper()
	t.Fatalf("%s\nreplay: %s", fmt.Sprintf(format, args...), replay(&t.scenario, t.seed, faults))
}

// replay is the command that runs a broadcast under the same faults.
func replay(s *experiments.Scenario, seed uint64, faults logp.Faults) string {
	words := []string{"pleach-lab sim"}
	add := func(when bool, format string, args ...any) {
		if when {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	tree := s.Dissemination == "tree" || s.Dissemination == "ack"
	gossip := s.Dissemination == "gossip"
	add(s.Dissemination != "tree", "--dissemination %s", s.Dissemination)
	add(tree, "--shape %s", s.Shape)
	add(tree && s.Order != topology.Interleaved, "--order %s", s.Order)
	add(gossip && s.GossipRounds > 0, "--gossip-rounds %d", s.GossipRounds)
	add(gossip && s.GossipRounds == 0, "--gossip-time %d --drain %d", s.GossipTime, s.Drain)
	add(true, "-P %d", s.Size)
	add(s.Root != 0, "--root %d", s.Root)
	add(true, "-L %d -o %d", s.L, s.O)
	add(s.Correction != "none", "--correction %s --start %s", s.Correction, s.Start)
	add(s.EarlyOnlyRelay, "--early relay")
	add(gossip, "--seed %d", seed)
	var fail []string
	for _, r := range faults.Dead {
		fail = append(fail, fmt.Sprint(r))
	}
	add(len(fail) > 0, "--fail %s", strings.Join(fail, ","))
	for _, d := range faults.Deaths {
		add(true, "--die %s", writeDeath(d))
	}
	return strings.Join(words, " ")
}

// writeDeath is a death as [logp.ParseDeath] reads it.
func writeDeath(d logp.Death) string {
	text := fmt.Sprintf("%d@%d", d.Rank, d.At)
	switch {
	case d.Phase != nil:
		text = fmt.Sprintf("%d@%s", d.Rank, d.Phase)
	case d.AfterSends > 0:
		text = fmt.Sprintf("%d#%d", d.Rank, d.AfterSends)
	}
	if d.Torn {
		text += "!"
	}
	return text
}
